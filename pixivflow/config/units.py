"""Durations and sizes as people write them."""

import re
from fractions import Fraction

DURATION_EXPECTED = 'a duration such as "45s", "90m", "1h30m", "2d" or "500ms"'
SIZE_EXPECTED = 'a size such as "500MiB", "8MB", "2GiB" or "0B"'

_DURATION_UNITS = {
    "w": Fraction(604_800),
    "d": Fraction(86_400),
    "h": Fraction(3_600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 1000),
}
_SIZE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_NUMBER = r"[0-9]{1,19}(?:\.[0-9]{1,9})?"
_DURATION_PART = re.compile(rf"({_NUMBER})(ms|[wdhms])")
_SIZE = re.compile(rf"({_NUMBER}) ?([A-Za-z]+)")
_LONGEST = Fraction(36_500 * 86_400)
_LARGEST = 2**60


def parse_duration(text: str) -> float:
    """Return the seconds of a text such as ``1h30m``: each unit once, the larger first.

    Raises ValueError, whose text says what was expected, with examples.
    """
    parts = _DURATION_PART.findall(text)
    units = [unit for _, unit in parts]
    order = [unit for unit in _DURATION_UNITS if unit in units]
    if not parts or "".join(number + unit for number, unit in parts) != text or units != order:
        raise ValueError(f"expected {DURATION_EXPECTED}")
    seconds = sum((Fraction(number) * _DURATION_UNITS[unit] for number, unit in parts), Fraction())
    if seconds > _LONGEST:
        raise ValueError('expected a duration of at most "36500d"')
    return float(seconds)


def format_duration(seconds: float) -> str:
    """Return the shortest text that `parse_duration` reads as this duration, to the millisecond."""
    left = round(seconds * 1000)
    text = ""
    for unit, length in _DURATION_UNITS.items():
        if unit == "w":
            continue
        count, left = divmod(left, int(length * 1000))
        if count:
            text += f"{count}{unit}"
    return text or "0s"


def parse_size(text: str) -> int:
    """Return the bytes of a text such as ``500MiB``. Raises ValueError, whose text says what was expected."""
    match = _SIZE.fullmatch(text)
    if match is None or match[2] not in _SIZE_UNITS:
        raise ValueError(f"expected {SIZE_EXPECTED}")
    size = Fraction(match[1]) * _SIZE_UNITS[match[2]]
    if size > _LARGEST:
        raise ValueError('expected a size of at most "1048576TiB"')
    return int(size)


def format_size(size: int) -> str:
    """Return the shortest exact text that `parse_size` reads as this size."""
    if size:
        for unit in ("TiB", "GiB", "MiB", "KiB"):
            if size % _SIZE_UNITS[unit] == 0:
                return f"{size // _SIZE_UNITS[unit]}{unit}"
    return f"{size}B"
