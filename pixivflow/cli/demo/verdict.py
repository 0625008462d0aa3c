"""The demo's judge: pure, and harder on the daemon than a reader of the channel would be."""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from pixivflow.cli.demo.facts import CellFacts, SlotFacts, VisiblePost
from pixivflow.cli.demo.scenery import INBOX, ROUTES
from pixivflow.delivery.keys import header_value
from protocol.states import ArtifactStatus, CellStatus, IntentStatus

PART = ".part"


class Evidence(msgspec.Struct, frozen=True):
    """What there is to judge, after the daemon's end; slots the oldest first.

    ``bound`` has the work that each (slot, target) was once seen with; ``retold`` what the receiver answered, in
    turn, to the post whose answer was lost.
    """

    slots: tuple[SlotFacts, ...]
    posts: tuple[VisiblePost, ...]
    on_disk: frozenset[tuple[str, str]]
    bound: Mapping[tuple[str, str], str]
    retold: tuple[str, ...]


def problems(evidence: Evidence, wanted: int) -> tuple[str, ...]:
    """Say what is wrong, if ``wanted`` slots had to be done in full; those after them may be unfinished."""
    return (
        *_undone(evidence.slots[:wanted], wanted),
        *_posts(evidence),
        *_works(evidence),
        *_files(evidence),
        *_crash(evidence.retold),
    )


def _undone(slots: tuple[SlotFacts, ...], wanted: int) -> Iterator[str]:
    if len(slots) < wanted:
        yield f"{len(slots)} slots ran, {wanted} had to"
    for each in slots:
        cells = {cell.cell.target_id: cell for cell in each.cells}
        for target, routes in ROUTES.items():
            cell = cells.get(target)
            if cell is None:
                yield f"{each.slot.slot_id}: {target} has no cell"
                continue
            if cell.cell.status is not CellStatus.SUBMITTED:
                because = f" ({cell.cell.reason_code})" if cell.cell.reason_code else ""
                yield f"{each.slot.slot_id}: {target} is {cell.cell.status}{because}, not submitted"
            delivered = sorted(
                intent.route for intent in cell.deliveries if intent.status == IntentStatus.DELIVERED
            )
            if delivered != sorted(routes):
                yield (
                    f"{each.slot.slot_id}: {target} went to {', '.join(delivered) or 'no route'}, "
                    f"not to {', '.join(sorted(routes))}"
                )


def _posts(evidence: Evidence) -> Iterator[str]:
    visible = Counter((post.route, post.key) for post in evidence.posts)
    intended: set[tuple[str, str]] = set()
    for cell in _cells(evidence.slots):
        for intent in cell.deliveries:
            name = intent.route, sent_key(intent.route, intent.idempotency_key)
            intended.add(name)
            if intent.status == IntentStatus.DELIVERED and not visible[name]:
                yield f"{name[0]}: the ledger has {name[1]} as delivered, but there is no post"
    for (route, key), count in visible.items():
        if count > 1:
            yield f"{route}: {count} posts with the key {key}"
        if (route, key) not in intended:
            yield f"{route}: nobody intended the post {key}"


def _works(evidence: Evidence) -> Iterator[str]:
    for (route, work), count in Counter((post.route, post.work) for post in evidence.posts).items():
        if count > 1:
            yield f"{route}: {work} was posted {count} times"
    for each in evidence.slots:
        for cell in each.cells:
            seen = evidence.bound.get((each.slot.slot_id, cell.cell.target_id))
            if seen is not None and seen != cell.cell.work:
                yield f"{each.slot.slot_id}: {cell.cell.target_id} had chosen {seen}, but has {cell.cell.work} now"


def _files(evidence: Evidence) -> Iterator[str]:
    recorded = {(file.root, file.path): file for cell in _cells(evidence.slots) for file in cell.files}
    unfinished = any(not cell.cell.status.terminal for cell in _cells(evidence.slots))
    for root, path in sorted(evidence.on_disk):
        if path.endswith(PART):
            if not unfinished:
                yield f"{path} was left behind"
        elif root != INBOX and (root, path) not in recorded:
            yield f"{path} has no record"
    for name, file in recorded.items():
        if file.status == ArtifactStatus.STORED and name not in evidence.on_disk:
            yield f"{file.path} has a record, but is not there"


def _crash(retold: tuple[str, ...]) -> Iterator[str]:
    if retold != ("lost", "replayed"):
        told = ", ".join(retold) or "nothing"
        yield f"the post with the lost answer met {told} at the receiver, not lost and then replayed"


def _cells(slots: tuple[SlotFacts, ...]) -> Iterator[CellFacts]:
    for each in slots:
        yield from each.cells


def sent_key(route: str, key: str) -> str:
    """Return an intent's key as its route's reader sees it: a header is encoded, a manifest is not."""
    return key if route == INBOX else header_value(key)
