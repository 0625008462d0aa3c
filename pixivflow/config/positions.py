"""On which line of a TOML text each key stands; `tomllib` does not say."""

import re
from collections.abc import Iterator

from pixivflow.config.problems import Keys

_PART = r"""(?:"[^"\n]*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=(.*)", re.DOTALL)
_DELIMITER = re.compile(r'"""|' + r"'''")


def find_lines(text: str) -> dict[Keys, int]:
    """Return the line, from 1, of every table and key of a valid TOML text; keys of inline tables have none."""
    lines: dict[Keys, int] = {}
    counts: dict[Keys, int] = {}
    table: Keys = ()
    for number, line in _lines_outside_texts(text):
        if header := _HEADER.match(line):
            table = _enter(_parts(header[2]), counts, array=header[1] == "[[")
            lines.setdefault(table, number)
        elif assignment := _ASSIGNMENT.match(line):
            lines.setdefault((*table, *_parts(assignment[1])), number)
    return lines


def _lines_outside_texts(text: str) -> Iterator[tuple[int, str]]:
    """Return the numbered lines that do not begin inside a text of several lines."""
    closing: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if closing is None:
            yield number, line
        for delimiter in _DELIMITER.findall(line):
            if closing is None:
                closing = delimiter
            elif delimiter == closing:
                closing = None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _enter(parts: tuple[str, ...], counts: dict[Keys, int], *, array: bool) -> Keys:
    """Return the keys of the table that a header opens: of a list of tables, its newest entry is meant."""
    keys: Keys = ()
    for part in parts[:-1]:
        keys = (*keys, part)
        if keys in counts:
            keys = (*keys, counts[keys] - 1)
    keys = (*keys, parts[-1])
    if array:
        counts[keys] = counts.get(keys, 0) + 1
        keys = (*keys, counts[keys] - 1)
    return keys
