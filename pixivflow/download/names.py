"""What the file of a page is called: a pure function of template, facts and page.

The path is relative, lies inside its root whatever the facts say, and differs for different pages of a work.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import PurePosixPath

from pixivflow.download.cleaning import (
    NameMode,
    byte_length,
    clean_characters,
    clean_value,
    is_reserved,
    shorten,
    trim,
)
from pixivflow.download.templates import (
    AUTO_PAGE,
    EXTENSION_BYTES,
    NAME_BYTES,
    NUMBERS,
    SUFFIX_BYTES,
    WORD_BYTES,
    Component,
    Piece,
    TemplateRefused,
    has_field,
    parse,
)
from protocol.payloads import WorkFacts

__all__ = ["TemplateRefused", "check_template", "file_path"]

JST = timezone(timedelta(hours=9))
_EXTENSION = re.compile(r"[a-z0-9]{1,5}")
_RATINGS = {1: "R-18", 2: "R-18G"}
_AI = 2


def check_template(template: str) -> None:
    """Raise `TemplateRefused` unless ``template`` can name the files of every work."""
    parse(template)


def file_path(template: str, facts: WorkFacts, page: int, extension: str, mode: NameMode) -> PurePosixPath:
    """Give the relative path of a page; ``page`` counts from 0, ``extension`` has no dot.

    Raises `TemplateRefused` for a bad template and ValueError for a bad extension. What can't be cut always
    fits: `check_template` sees to it.
    """
    if not _EXTENSION.fullmatch(extension):
        raise ValueError(f"not an extension: {extension!r}, expected letters and digits like jpg")
    components = parse(template)
    room = NAME_BYTES - EXTENSION_BYTES - SUFFIX_BYTES
    if not has_field(components, "page"):
        room -= len(AUTO_PAGE)
        if max(facts.page_count - 1, page) > 0:
            components = (*components[:-1], (*components[-1], Piece(literal="_p"), Piece(field="page")))
            room += len(AUTO_PAGE)
    names = _Values(facts, page, mode)
    folders = [names.component(pieces, NAME_BYTES) for pieces in components[:-1]]
    # A folder's name may be too long for a file: an empty last part falls back to the id.
    stem = names.component(components[-1], room) or str(facts.work.id)
    return PurePosixPath(*filter(None, folders), f"{stem}.{extension}")


class _Values:
    """The cleaned values of one page."""

    def __init__(self, facts: WorkFacts, page: int, mode: NameMode) -> None:
        self._mode = mode
        self._created = _created(facts)
        self._numbers = _numbers(facts, page)
        # Text is cut for the widest page number, so that all pages of a work cut it alike and stay distinct.
        widest = 10 ** max(3, len(str(max(facts.page_count - 1, page)))) - 1
        self._widest = {**self._numbers, "page": widest}
        self._words = {
            name: shorten(clean_value(text, mode), WORD_BYTES)
            for name, text in _words(facts, self._created).items()
        }
        self._texts = {
            name: shorten(clean_value(text, mode), NAME_BYTES) for name, text in _texts(facts).items()
        }

    def component(self, pieces: Component, room: int) -> str:
        """Give one component of at most ``room`` bytes, empty when nothing is left of it."""
        texts = {piece.field: self._texts[piece.field] for piece in pieces if piece.field in self._texts}
        shares = sum(piece.field in texts for piece in pieces)
        while (excess := byte_length(self._assembled(pieces, texts, self._widest)) - room) > 0:
            if not any(texts.values()):
                raise TemplateRefused(f"what can't be cut takes more than {room} bytes: {texts or pieces!r}")
            longest = max(sorted(texts), key=lambda name: byte_length(texts[name]))
            cut = max(1, excess // shares)
            texts[longest] = shorten(texts[longest], byte_length(texts[longest]) - cut)
        return self._assembled(pieces, texts, self._numbers)

    def _assembled(self, pieces: Component, texts: Mapping[str, str], numbers: Mapping[str, int]) -> str:
        parts = (self._value(piece, texts, numbers) for piece in pieces)
        component = trim(unicodedata.normalize("NFC", "".join(parts)))
        return f"_{component}" if self._mode == "portable" and is_reserved(component) else component

    def _value(self, piece: Piece, texts: Mapping[str, str], numbers: Mapping[str, int]) -> str:
        if not piece.field:
            return clean_characters(piece.literal, self._mode)
        if piece.field in NUMBERS:
            return format(numbers[piece.field], piece.spec)
        if piece.field == "date":
            written = self._created.strftime(piece.spec or "%Y-%m-%d") if self._created else ""
            return clean_value(written, self._mode)
        return texts[piece.field] if piece.field in texts else self._words[piece.field]


def _numbers(facts: WorkFacts, page: int) -> dict[str, int]:
    return {
        "id": facts.work.id,
        "page": page,
        "page_count": facts.page_count,
        "author_id": facts.author_id,
        "width": facts.width,
        "height": facts.height,
    }


def _texts(facts: WorkFacts) -> dict[str, str]:
    return {
        "title": facts.title,
        "author_name": facts.author_name,
        "author_account": facts.author_account,
        "tags": " ".join(facts.tags),
    }


def _words(facts: WorkFacts, created: datetime | None) -> dict[str, str]:
    return {
        "type": facts.type,
        "year": f"{created:%Y}" if created else "",
        "month": f"{created:%m}" if created else "",
        "day": f"{created:%d}" if created else "",
        "r18": _RATINGS.get(facts.x_restrict, ""),
        "ai": "AI" if facts.ai_type == _AI else "",
        "revision": "".join(filter(str.isalnum, facts.revision)),
    }


def _created(facts: WorkFacts) -> datetime | None:
    """Give the time of creation in Japan; None when it is unknown or no time."""
    try:
        created = datetime.fromisoformat(facts.created_at)
        return created.astimezone(JST) if created.tzinfo else created.replace(tzinfo=JST)
    except (ValueError, OverflowError):
        return None
