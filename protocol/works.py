"""The identity of a work: Pixiv numbers illustrations and novels apart."""

from enum import StrEnum
from typing import Self

import msgspec


class WorkKind(StrEnum):
    """One of Pixiv's two id spaces; manga and ugoira are facts of an illustration."""

    ILLUSTRATION = "illustration"
    NOVEL = "novel"


class WorkRef(msgspec.Struct, frozen=True, order=True):
    """A work, by kind and id; its text form is ``illustration:123``."""

    kind: WorkKind
    id: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text form back. Raises ValueError for anything else."""
        kind, separator, number = text.partition(":")
        if not separator or not (number.isascii() and number.isdigit()):
            raise ValueError(f"not a work: {text!r}, expected a form like illustration:123")
        return cls(WorkKind(kind), int(number))

    @property
    def url(self) -> str:
        """The address of the work's page on Pixiv."""
        if self.kind is WorkKind.NOVEL:
            return f"https://www.pixiv.net/novel/show.php?id={self.id}"
        return f"https://www.pixiv.net/artworks/{self.id}"
