"""What kinds of value the configuration knows: how each is read from its text and shown again."""

import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from pixivflow.config import texts, units


@dataclass(frozen=True)
class Kind:
    """A note on a field's type. Its functions raise ValueError, whose text begins with "expected"."""

    expected: str
    read: Callable[[str], Any] | None = None
    """Makes the value from a text; None: the value is taken as it is."""
    check: Callable[[Any], None] | None = None
    """Refuses values of the right type."""
    show: Callable[[Any], Any] | None = None
    """Makes the text back; None: the value is shown as it is."""
    secret: bool = False
    """Never shown."""
    address: bool = False
    """Shown without user, password and tokens."""


def _at_least(least: int, most: int | None = None) -> Kind:
    """Return a whole number within bounds."""
    bounds = f"{least} or more" if most is None else f"from {least} to {most}"
    expected = f"a whole number, {bounds}"

    def check(value: int) -> None:
        if value < least or (most is not None and value > most):
            raise ValueError(f"expected {expected}")

    return Kind(expected, check=check)


def _positive(text: str) -> float:
    seconds = units.parse_duration(text)
    if seconds <= 0:
        raise ValueError(f"expected {units.DURATION_EXPECTED}, longer than zero")
    return seconds


Seconds = Annotated[
    float, Kind(units.DURATION_EXPECTED, read=units.parse_duration, show=units.format_duration)
]
Timeout = Annotated[float, Kind(units.DURATION_EXPECTED, read=_positive, show=units.format_duration)]
Size = Annotated[int, Kind(units.SIZE_EXPECTED, read=units.parse_size, show=units.format_size)]
Count = Annotated[int, _at_least(0)]
Positive = Annotated[int, _at_least(1)]
UpTo64 = Annotated[int, _at_least(1, 64)]
UpTo1000 = Annotated[int, _at_least(1, 1000)]

Text = Annotated[str, Kind("a text", check=texts.check_text)]
Texts = Annotated[tuple[str, ...], Kind("a list of texts", check=texts.check_texts)]
Ids = Annotated[tuple[str, ...], Kind("a list of ids, each once", check=texts.check_distinct)]
Id = Annotated[str, Kind(texts.ID_EXPECTED, check=texts.check_id)]
Secret = Annotated[str, Kind("a text", check=texts.check_one_line, secret=True)]
Headers = Annotated[dict[str, str], Kind("a table of texts", check=texts.check_headers, secret=True)]
Fields = Annotated[dict[str, str], Kind("a table of texts", check=texts.check_fields)]
FilePath = Annotated[Path, Kind("a path", read=texts.read_path, show=str)]
Url = Annotated[str, Kind(texts.URL_EXPECTED, read=texts.read_url, address=True)]
BaseUrl = Annotated[str, Kind(texts.URL_EXPECTED, read=texts.read_base_url, address=True)]
Proxy = Annotated[str, Kind(texts.PROXY_EXPECTED, read=texts.read_proxy, address=True)]
Language = Annotated[str, Kind(texts.LANGUAGE_EXPECTED, check=texts.check_language)]
Cron = Annotated[str, Kind(texts.CRON_EXPECTED, check=texts.check_cron)]
Zone = Annotated[str, Kind(texts.ZONE_EXPECTED, check=texts.check_zone)]
Day = Annotated[str, Kind(texts.DAY_EXPECTED, check=texts.check_day)]
RankingDay = Annotated[str, Kind(texts.RANKING_DAY_EXPECTED, check=texts.check_ranking_day)]
Ranking = Annotated[str, Kind(texts.RANKING_EXPECTED, check=texts.check_ranking)]
PathTemplate = Annotated[str, Kind(texts.PATH_EXPECTED, check=texts.check_path_template)]


def kind_of(annotation: Any) -> Kind | None:
    """Return the note on a field's type, also of an optional one."""
    for part in _alternatives(annotation):
        for note in getattr(part, "__metadata__", ()):
            if isinstance(note, Kind):
                return note
    return None


def choices_of(annotation: Any) -> tuple[str, ...]:
    """Return the words that a field of fixed choices knows; empty for any other field."""
    for part in _alternatives(annotation):
        if typing.get_origin(part) is Literal:
            return typing.get_args(part)
    return ()


def expectation(annotation: Any) -> str:
    """Return what a field expects, for a message."""
    if kind := kind_of(annotation):
        return kind.expected
    if choices := choices_of(annotation):
        return texts.one_of(choices)
    return "true or false" if annotation is bool else "a text"


def placeholder(annotation: Any) -> Any:
    """Return a value that stands in for one that is missing, so that the rest can be examined."""
    kind = kind_of(annotation)
    if kind and kind.read is texts.read_path:
        return Path()
    return () if typing.get_origin(typing.get_args(annotation)[0]) is tuple else ""


def read(annotation: Any, value: Any) -> Any:
    """Return the value of a field. Raises ValueError, whose text begins with "expected"."""
    kind = kind_of(annotation)
    if kind and kind.read:
        if not isinstance(value, str):
            raise ValueError(f"expected {kind.expected}")
        return kind.read(value)
    if isinstance(value, dict):
        _only_texts(value)
    try:
        result = msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        raise ValueError(f"expected {expectation(annotation)}") from None
    if kind and kind.check:
        kind.check(result)
    return result


def _only_texts(values: dict[str, Any]) -> None:
    others = [name for name, value in values.items() if not isinstance(value, str)]
    if others:
        raise ValueError(f'expected a text in quotes as the value of "{others[0]}"')


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    origin = typing.get_origin(annotation)
    if origin is typing.Union or origin is types.UnionType:
        return typing.get_args(annotation)
    return (annotation,)
