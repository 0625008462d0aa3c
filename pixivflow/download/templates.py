"""The language of path templates: what is written in the configuration, parsed and checked once."""

import re
import string
import unicodedata

import msgspec

from pixivflow.download.cleaning import byte_length

NAME_BYTES = 255
"""The most bytes that file systems take for one component."""
SUFFIX_BYTES = 16
"""Room for what is put behind a finished name: ``.part``, ``.json`` in place of the extension, ``.foreign-9999``."""
EXTENSION_BYTES = 6
"""The longest extension with its dot."""
AUTO_PAGE = "_p199"
MOST_FOLDERS = 9

NUMBERS = frozenset({"id", "page", "page_count", "author_id", "width", "height"})
TEXTS = frozenset({"title", "author_name", "author_account", "tags"})
WORDS = frozenset({"type", "year", "month", "day", "r18", "ai", "revision"})
FIELDS = ("date", *sorted(NUMBERS), *sorted(TEXTS), *sorted(WORDS))

_NUMBER_SPEC = re.compile(r"(0(?P<width>[0-9]{1,2}))?d?")
_DATE_SPEC = re.compile(r"([^%]|%[YymdHMSjVGu%])*")
_MOST_DIGITS = 20
_MOST_DATE = 4
WORD_BYTES = 16


class TemplateRefused(ValueError):
    """The template can't name files; the text says why and what would be right."""


class Piece(msgspec.Struct, frozen=True):
    """Literal text, or a field with its format."""

    literal: str = ""
    field: str = ""
    spec: str = ""


Component = tuple[Piece, ...]


def parse(template: str) -> tuple[Component, ...]:
    """Split ``template`` into its folders and the file's name. Raises `TemplateRefused`."""
    try:
        parsed = tuple(string.Formatter().parse(template))
    except ValueError as error:
        raise _refused(template, f"{error}; write braces of your own as {{{{ and }}}}") from error
    components: list[list[Piece]] = [[]]
    for literal, field, spec, conversion in parsed:
        _add_literal(components, literal)
        if field is not None:
            _check_field(template, field, spec or "", conversion)
            _add_field(components, field, spec or "")
    result = tuple(tuple(pieces) for pieces in components)
    _check_shape(template, result)
    return result


def has_field(components: tuple[Component, ...], field: str) -> bool:
    """Whether the field stands anywhere in the template."""
    return any(piece.field == field for pieces in components for piece in pieces)


def _add_literal(components: list[list[Piece]], literal: str) -> None:
    first, *others = literal.split("/")
    if first:
        components[-1].append(Piece(literal=first))
    components.extend([Piece(literal=text)] if text else [] for text in others)


def _add_field(components: list[list[Piece]], field: str, spec: str) -> None:
    """Add a field; a slash in the format of a date separates folders like any other of the template."""
    first, *others = spec.split("/")
    components[-1].append(Piece(field=field, spec=first))
    components.extend([Piece(field=field, spec=part)] if part else [] for part in others)


def _check_field(template: str, field: str, spec: str, conversion: str | None) -> None:
    if field in {"ext", "extension"}:
        raise _refused(template, f"{{{field}}} is not needed: the extension is added by itself")
    if field not in FIELDS:
        raise _refused(template, f"unknown field {{{field}}}; known are {', '.join(FIELDS)}")
    if conversion:
        raise _refused(template, f"{{{field}!{conversion}}}: conversions are not possible, write {{{field}}}")
    if not _takes(field, spec):
        hint = "{date:%Y-%m}" if field == "date" else "{page:03d}"
        raise _refused(
            template, f"format {spec!r} does not fit {{{field}}}; numbers and dates take one, as in {hint}"
        )


def _takes(field: str, spec: str) -> bool:
    if field == "date":
        return _DATE_SPEC.fullmatch(spec) is not None
    if field in NUMBERS:
        found = _NUMBER_SPEC.fullmatch(spec)
        return found is not None and int(found["width"] or 0) <= _MOST_DIGITS
    return spec == ""


def _check_shape(template: str, components: tuple[Component, ...]) -> None:
    if not has_field(components, "id"):
        raise _refused(template, "{id} is missing; without it two works could get one name")
    if not components[0]:
        raise _refused(template, "it begins with a slash; paths are relative to the download folder")
    if not components[-1]:
        raise _refused(template, "it ends with a slash; the last part is the name of the file")
    if len(components) > MOST_FOLDERS + 1:
        raise _refused(template, f"it has more than {MOST_FOLDERS} folders")
    for at, pieces in enumerate(components):
        _check_component(template, pieces, last=at == len(components) - 1)


def _check_component(template: str, pieces: Component, *, last: bool) -> None:
    written = "".join(piece.literal + piece.spec for piece in pieces)
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in written):
        raise _refused(template, "it has control characters")
    if pieces and all(piece.literal for piece in pieces) and written.strip() in {".", ".."}:
        raise _refused(template, f"the folder {written!r} would lead elsewhere")
    room = NAME_BYTES - (EXTENSION_BYTES + SUFFIX_BYTES + len(AUTO_PAGE) if last else 0)
    needed = sum(_most_bytes(piece) for piece in pieces)
    if needed > room:
        raise _refused(template, f"the part {written!r} can take {needed} bytes, but {room} is the most")


def _most_bytes(piece: Piece) -> int:
    """Give the most bytes that can't be cut."""
    if piece.field in TEXTS:
        return 0
    if piece.field in NUMBERS:
        return _MOST_DIGITS
    if piece.field == "date":
        return max(10, _MOST_DATE * byte_length(unicodedata.normalize("NFC", piece.spec)))
    return WORD_BYTES if piece.field else byte_length(unicodedata.normalize("NFC", piece.literal))


def _refused(template: str, why: str) -> TemplateRefused:
    return TemplateRefused(f"path template {template!r}: {why}")
