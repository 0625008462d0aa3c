"""The ``Range`` header: which part of a file is asked for."""

import re

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class Unsatisfiable(Exception):
    """The range lies outside the file."""


def part(header: str | None, size: int) -> tuple[int, int] | None:
    """First and last byte asked for; None for the whole file. Raises `Unsatisfiable`."""
    found = _RANGE.fullmatch(header.replace(" ", "")) if header else None
    if found is None or not (found[1] or found[2]):
        return None
    if found[1]:
        first, last = int(found[1]), int(found[2]) if found[2] else size - 1
        if last < first and found[2]:
            return None
    else:
        first, last = max(0, size - int(found[2])), size - 1
    if first >= size:
        raise Unsatisfiable
    return first, min(last, size - 1)
