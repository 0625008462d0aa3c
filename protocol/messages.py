"""Doorbells between actors: they say where to look, never what is true there.

A message carries identity only. Whoever loses one finds the same work in the ledger a few seconds later.
"""

import msgspec


class SlotDue(msgspec.Struct, frozen=True, tag=True):
    """A slot and its cells were committed."""

    slot_id: str


class RunCell(msgspec.Struct, frozen=True, tag=True):
    """A cell may have become claimable."""

    cell_id: int


class OutboxReady(msgspec.Struct, frozen=True, tag=True):
    """A route may have a row to send."""

    route: str


class Changed(msgspec.Struct, frozen=True, tag=True):
    """Something a watcher may show has changed; ``kind`` is ``slot``, ``cell`` or ``outbox``."""

    kind: str
    id: str


Message = SlotDue | RunCell | OutboxReady | Changed
