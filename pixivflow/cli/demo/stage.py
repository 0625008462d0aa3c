"""What the viewer sees: lines that stay, and on a terminal a table that fills while the daemon works."""

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.text import Text

from pixivflow.cli.demo.facts import SlotFacts, VisiblePost
from pixivflow.cli.demo.table import slot_name, table_of, work_text
from pixivflow.cli.output import plain
from protocol.states import CellStatus

MARGIN: Final = 9
LEGEND: Final = (
    "Slots by their time (UTC). kept: in the downloads; dropped: cached only until it was delivered."
)


class ViewerGone(Exception):
    """Nobody reads the output any more; nothing is printed from now on."""


class DemoConsole(Console):
    """A console that says so when its reader has gone."""

    def on_broken_pipe(self) -> None:
        """Go quiet, and raise `ViewerGone` in place of ending the process in the middle of everything."""
        with suppress(SystemExit):
            super().on_broken_pipe()
        raise ViewerGone("nobody reads the output any more")


class Stage:
    """Tells the story. ``clock`` gives seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self._clock = clock
        self._began = clock()
        self._live: Live | None = None
        self._spinner = Spinner("dots")
        self._scene: tuple[Sequence[SlotFacts], Sequence[VisiblePost]] = ((), ())
        self._waits_for = ""
        self._mentioned: set[str] = set()

    @contextmanager
    def curtain(self) -> Generator[None]:
        """Keep the table at the foot of the terminal during the block; elsewhere there are only lines."""
        if not self.console.is_terminal or self.console.is_dumb_terminal:
            yield
            return
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def title(self, text: str) -> None:
        """Print the first line."""
        self.console.print(Text(text, "bold"))
        self.console.print()

    def tell(self, what: str, why: str = "", *, style: str = "bold") -> None:
        """Print what happened now, and why that is worth watching."""
        width = max(MARGIN, self.console.width - MARGIN)
        lines = [
            line for text in (Text(what, style), Text(why, "dim")) for line in text.wrap(self.console, width)
        ]
        margin = Text(f"{f'{self._clock() - self._began:.1f} s':>{MARGIN - 2}}  ", "cyan")
        for line in lines:
            line.rstrip()
            if line:
                self.console.print(margin + line)
                margin = Text(" " * MARGIN)

    def expect(self, what: str) -> None:
        """Say what is waited for."""
        self._waits_for = what
        self._draw()

    def show(self, slots: Sequence[SlotFacts], posts: Sequence[VisiblePost]) -> None:
        """Show how far everything is."""
        for slot in slots:
            self._mention_due(slot)
            if self._live is None:
                self._mention_ends(slot)
        self._scene = slots, posts
        self._draw()

    def _mention_due(self, slot: SlotFacts) -> None:
        if slot.slot.slot_id not in self._mentioned:
            self._mentioned.add(slot.slot.slot_id)
            targets = ", ".join(cell.cell.target_id for cell in slot.cells)
            self.tell(f"slot {slot_name(slot, 0)} is due: {targets}", style="")

    def _mention_ends(self, slot: SlotFacts) -> None:
        for cell in slot.cells:
            name = f"{slot.slot.slot_id} {cell.cell.target_id}"
            if cell.cell.status.terminal and name not in self._mentioned:
                self._mentioned.add(name)
                routes = ", ".join(intent.route for intent in cell.deliveries)
                end = f"posted to {routes}" if cell.cell.status is CellStatus.SUBMITTED else cell.cell.status
                self.tell(f"  {cell.cell.target_id}: {work_text(cell)}, {end}", style="")

    def _draw(self) -> None:
        if self._live is not None:
            self._live.update(self._foot(), refresh=True)

    def _foot(self) -> RenderableType:
        slots, posts = self._scene
        self._spinner.update(text=Text(self._waits_for, "dim"))
        waiting = Padding(self._spinner, (0, 0, 0, MARGIN - 2))
        table = table_of(slots, posts, self.console.width)
        return Group("", table, "", waiting) if slots else Group("", waiting)

    def table(self, slots: Sequence[SlotFacts], posts: Sequence[VisiblePost]) -> None:
        """Print the last table."""
        self.console.print()
        table = table_of(slots, posts, self.console.width)
        if self.console.is_terminal:
            self.console.print(table)
        else:
            for line in self.console.render_lines(table, pad=False):
                self.console.print(Text("".join(segment.text for segment in line).rstrip()), soft_wrap=True)
        self.console.print(Text(LEGEND, "dim"))
        self.console.print()

    def list(self, lines: Iterable[tuple[str, str]]) -> None:
        """Print names and what they stand for; the latter can be copied."""
        rows = tuple(lines)
        width = max(len(name) for name, _ in rows) + 2
        for name, value in rows:
            self.console.print(Text(f"{name:<{width}}", "bold") + Text(value, "not bold"), soft_wrap=True)

    def verdict(self, good: str, problems: Sequence[str]) -> None:
        """Print how it came out."""
        if not problems:
            self.console.print(Text(good, "bold green"))
        for problem in problems:
            self.console.print(Text(f"wrong: {plain(problem)}", "bold red"))
        self.console.print()
