"""What may stand in a file name: text cleaned, cut between characters as a person sees them."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

NameMode = Literal["portable", "linux"]

_JOINER = "\u200d"
_BLANKS = re.compile(r"\s+")
_PORTABLE = re.compile(r'[\\/:*?"<>|]')
_LINUX = re.compile(r"/")
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)


def clean_characters(text: str, mode: NameMode) -> str:
    """Give ``text`` in NFC without control and format characters, forbidden ones replaced by ``_``.

    Line breaks and tabs become spaces. Direction marks and zero-width characters go in both modes, since
    they can hide the true extension; the joiner stays inside emoji.
    """
    normal = unicodedata.normalize("NFC", text)
    kept = "".join(
        _kept(character, normal[at - 1 : at], normal[at + 1 : at + 2]) for at, character in enumerate(normal)
    )
    # What was removed may have kept a base and its mark apart.
    kept = unicodedata.normalize("NFC", kept)
    return (_PORTABLE if mode == "portable" else _LINUX).sub("_", kept)


def _kept(character: str, before: str, after: str) -> str:
    category = unicodedata.category(character)
    if category not in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return character
    if character.isspace():
        return " "
    joins = character == _JOINER and _pictorial(before) and _pictorial(after)
    return character if joins else ""


def _pictorial(character: str) -> bool:
    """Whether an emoji sequence can go on here: symbols, skin tones, variation selectors."""
    return character != "" and (character == "\ufe0f" or unicodedata.category(character) in {"So", "Sk"})


def clean_value(text: str, mode: NameMode) -> str:
    """Give a value that is safe inside a component: one line, single spaces, no dots at the ends.

    Blank text becomes empty. Text that only had dots becomes ``_``. On ``linux`` inner values keep their dots.
    """
    single = _BLANKS.sub(" ", clean_characters(text, mode)).strip(" ")
    stripped = trim(single) if mode == "portable" else single
    return stripped or ("_" if single else "")


def trim(text: str) -> str:
    """Give ``text`` without spaces and dots at its ends."""
    return text.strip(" .\u3000")


def is_reserved(component: str) -> bool:
    """Whether Windows takes this name for a device, whatever its extension."""
    return _RESERVED.fullmatch(component.partition(".")[0].rstrip(" ")) is not None


def byte_length(text: str) -> int:
    """Give the length in UTF-8."""
    return len(text.encode())


def clusters(text: str) -> Iterator[str]:
    """Split ``text`` into what a person sees as one character: marks, emoji sequences and flags stay whole."""
    start = 0
    for at in range(1, len(text)):
        if _breaks(text, start, at):
            yield text[start:at]
            start = at
    if text:
        yield text[start:]


def _breaks(text: str, start: int, at: int) -> bool:
    character, before = text[at], text[at - 1]
    if _extends(character) or before == _JOINER or (_leads(before) and _leads(character)):
        return False
    paired = _is_flag_letter(character) and _is_flag_letter(before) and at - start == 1
    return not paired


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character).startswith("M")
        or character == _JOINER
        or "\u1160" <= character <= "\u11ff"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _leads(character: str) -> bool:
    """Whether it is the first part of a Hangul syllable, which takes those that follow."""
    return "\u1100" <= character <= "\u115f"


def shorten(text: str, limit: int) -> str:
    """Give the longest start of ``text`` that is at most ``limit`` bytes and ends between characters."""
    kept: list[str] = []
    left = limit
    for cluster in clusters(text):
        left -= byte_length(cluster)
        if left < 0:
            break
        kept.append(cluster)
    return trim("".join(kept)) if left < 0 else text
