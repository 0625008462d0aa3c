"""Structs that hold secrets and do not show them."""

from typing import Any, ClassVar

import msgspec

HIDDEN = "***"


class Secretive(msgspec.Struct, frozen=True):
    """A Struct whose printed forms show ``***`` in place of the fields named in ``secret_fields``."""

    secret_fields: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, self._shown(name)) for name in self.__struct_fields__]

    def _shown(self, name: str) -> Any:
        value = getattr(self, name)
        return HIDDEN if name in self.secret_fields and value is not None else value
