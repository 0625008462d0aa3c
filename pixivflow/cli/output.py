"""How things look on the terminal: tables, local times, links; and JSON for programs."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pixivflow.config.units import format_duration
from protocol.works import WorkRef

NOTHING: Final = "–"
PIPE_WIDTH: Final = 240
FOLDING: Final = frozenset({"title", "targets", "note", "last answer", "reason", "result"})
"""Columns that become narrower when the terminal is too small for all."""
TIMES: Final = frozenset({"due", "ended", "made", "next try", "settled"})
"""Columns with instants of the local clock."""
STYLES: Final = {
    "success": "green",
    "submitted": "green",
    "delivered": "green",
    "done": "green",
    "duplicate": "yellow",
    "no_candidate": "yellow",
    "missed": "yellow",
    "partial": "yellow",
    "failed": "red",
    "dead": "red",
    "uncertain": "magenta",
    "running": "cyan",
    "delivery_pending": "cyan",
}


FOLDED_WIDTH: Final = 10


def console() -> Console:
    """Give the console of standard output: colours on a terminal only, no markup, wide where it is piped."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, markup=False, emoji=False, highlight=False)


def plain(text: object) -> str:
    """Return a text of unknown origin without what could steer a terminal."""
    return "".join(char if char.isprintable() else " " for char in str(text))


def when(at_ms: int | None) -> str:
    """Return an instant as the local clock shows it."""
    return (
        NOTHING
        if at_ms is None
        else f"{datetime.fromtimestamp(at_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S %Z}"
    )


def brief(at_ms: int | None) -> str:
    """Return an instant for a table: without the year while it is this one."""
    if at_ms is None:
        return NOTHING
    local = datetime.fromtimestamp(at_ms / 1000).astimezone()
    this_year = local.year == datetime.now().astimezone().year
    return f"{local:%m-%d %H:%M:%S}" if this_year else f"{local:%Y-%m-%d %H:%M}"


def _zone(local: datetime) -> str:
    name = f"{local:%Z}"
    return name if name == "UTC" else f"{name} (UTC{local:%z})"


def span(seconds: float) -> str:
    """Return a rough duration: its two largest units."""
    text = format_duration(max(0, round(seconds)))
    parts: list[str] = []
    for char in text:
        if not parts or (parts[-1][-1].isalpha() and char.isdigit()):
            parts.append("")
        parts[-1] += char
    return " ".join(parts[:2])


def work_id(work: str | None) -> str:
    """Return the short form of a work's name."""
    return NOTHING if work is None else work.removeprefix("illustration:")


def work_url(work: str) -> str:
    """Return the address of a work's page."""
    return WorkRef.parse(work).url


def status(word: str | None) -> Text:
    """Return a status word in its colour."""
    return Text(word or NOTHING, style=STYLES.get(word or "", ""))


def print_json(value: Any) -> None:
    """Print plain data as JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Print a table, or one line that says why there is none. Columns without any text are left out."""
    listed = [list(row) for row in rows]
    if not listed:
        click.echo(empty)
        return
    used = [index for index in range(len(columns)) if any(str(row[index]) for row in listed)]
    _print_used([columns[index] for index in used], [[row[index] for index in used] for row in listed])
    if TIMES & {columns[index] for index in used}:
        click.echo(f"times are {_zone(datetime.now().astimezone())}")


def _print_used(columns: Sequence[str], listed: Sequence[Sequence[object]]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        numeric = all(isinstance(row[index], int) for row in listed)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        folds = column in FOLDING
        table.add_column(
            column,
            justify=justify,
            overflow="fold",
            no_wrap=not folds,
            min_width=FOLDED_WIDTH if folds else None,
        )
    for row in listed:
        table.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in row))
    console().print(table)


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Print pairs of a name and a value, one a line."""
    screen = console()
    for name, value in facts:
        shown = value if isinstance(value, Text) else Text(plain(value))
        screen.print(Text.assemble((f"{name:<14}", "bold"), shown), soft_wrap=True)
