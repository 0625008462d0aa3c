"""OutboxWorker: one lane a route. A lane looks at pause, breaker, readiness and interval, claims one row, sends, settles."""

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final, Protocol

import msgspec
import structlog
import trio

from actors.bells import Inbox, wait_for_bell
from actors.core import Core
from actors.settlement import RetryTerms, settlement_of
from actors.supervisor import supervise
from pixivflow import failpoints
from pixivflow.delivery.breaker import Breaker
from pixivflow.delivery.senders import FileMissing, Sender
from pixivflow.ledger.engine import Database, LedgerUnavailable
from pixivflow.ledger.health import (
    RouteRow,
    note_waiting,
    open_route,
    pause_route,
    read_route,
    resume_route,
    save_route,
)
from pixivflow.ledger.leases import Queue, release
from pixivflow.ledger.outbox import (
    ClaimedRow,
    Settled,
    Settlement,
    claim_row,
    make_due,
    next_due,
    settle_row,
)
from protocol.messages import Changed
from protocol.payloads import Payload
from protocol.reasons import Reason
from protocol.states import IntentStatus
from protocol.verdicts import Verdict, VerdictKind

log = structlog.get_logger(__name__)
SETTLE_S: Final = 5.0
PROBE_PAUSED_MS: Final = 3_600_000
NOT_READY_S: Final = 30.0
NOT_THE_RECEIVER: Final = frozenset({"artifact_unreadable", "configuration", "disk_full", "internal"})
"""Failures on our side, which say nothing about the way to the receiver."""


class OpenSender(Protocol):
    """Opens the sender of a lane; what it holds is closed with the lane."""

    def __call__(self) -> AbstractAsyncContextManager[Sender]:
        """Open it."""


class LaneTerms(msgspec.Struct, frozen=True):
    """A route as its lane needs it; ``facts`` is a fingerprint of its settings, secrets included only as a hash."""

    route: str
    facts: str
    retry: RetryTerms
    timeout_s: float
    min_interval_s: float
    unready: str = "the receiver is not ready"
    """What to tell people while the route is not ready."""


class Lane:
    """The sender of one route: one row at a time."""

    def __init__(
        self, core: Core, terms: LaneTerms, open_sender: OpenSender, only: Collection[int] | None
    ) -> None:
        self._core = core
        self._terms = terms
        self._open_sender = open_sender
        self._only = only

    async def run(self, inbox: Inbox) -> None:
        """Send what is due, after each bell and every few seconds, until cancelled."""
        async with self._open_sender() as sender:
            while True:
                self._core.pulse.beat(f"lane-{self._terms.route}")
                pause_s = self._core.idle_s()
                try:
                    pause_s = await self._drain(sender)
                except LedgerUnavailable as error:
                    log.warning("ledger_unavailable", route=self._terms.route, error=str(error))
                await wait_for_bell(inbox, pause_s)

    async def _drain(self, sender: Sender) -> float:
        """Send due rows until none is left or the route must wait; return how long to sleep."""
        ready = False
        while True:
            self._core.pulse.beat(f"lane-{self._terms.route}")
            due_at, health = await self._look()
            if due_at is None or due_at > self._core.now():
                return self._sleep_until(due_at)
            breaker = Breaker.decode(health.breaker)
            if not self._may_send(health, breaker):
                return self._core.idle_s()
            if (pause_s := self._interval_left(health)) > 0:
                return min(pause_s, self._core.idle_s())
            if not ready and not await sender.ready():
                await self._note_waiting(health, self._terms.unready)
                return NOT_READY_S
            ready = True
            await self._note_waiting(health, None)
            if not await self._send_next(sender, breaker, paused=health.paused_at is not None):
                return self._core.idle_s()

    async def _look(self) -> tuple[int | None, RouteRow]:
        """When the next row is due, and how the route is; a pause made under other settings is lifted."""
        due_at, health = await self._core.ledger.read(_state_of, self._terms.route)
        if health is None or health.facts != self._terms.facts:
            health = await self._core.ledger.write(
                open_route, self._terms.route, self._terms.facts, self._core.now()
            )
        return due_at, health

    async def _note_waiting(self, health: RouteRow, reason: str | None) -> None:
        """Tell once what the route waits for, and once that it waits no more."""
        if health.paused_at is None and health.reason != reason:
            if reason is not None:
                log.warning("route_not_ready", route=self._terms.route, reason=reason)
            await self._core.ledger.write(note_waiting, self._terms.route, reason)

    def _sleep_until(self, due_at: int | None) -> float:
        idle = self._core.idle_s()
        return idle if due_at is None else min(idle, max(0.0, (due_at - self._core.now()) / 1000))

    def _may_send(self, health: RouteRow, breaker: Breaker) -> bool:
        now = self._core.now()
        if health.paused_at is not None:
            since = now - max(health.paused_at, health.last_sent_at or 0)
            return not 0 <= since < PROBE_PAUSED_MS  # a clock that was set back lets a probe pass
        return breaker.allows(now)

    def _interval_left(self, health: RouteRow) -> float:
        """Seconds until the next send is welcome; slept in the open, so that the lane is seen to live."""
        since_s = (self._core.now() - (health.last_sent_at or 0)) / 1000
        return self._terms.min_interval_s - since_s if 0 <= since_s < self._terms.min_interval_s else 0.0

    async def _send_next(self, sender: Sender, breaker: Breaker, *, paused: bool) -> bool:
        row = await self._core.ledger.write(
            claim_row,
            self._terms.route,
            self._core.owner,
            self._core.now(),
            held=self._core.held.ids(Queue.OUTBOX),
            only=self._only,
        )
        if row is None:
            return False
        with self._core.held.hold(row.lease, self._core.now()) as scope:
            settlement: Settlement | None = None
            verdict: Verdict | None = None
            try:
                self._core.pulse.beat(f"lane-{self._terms.route}", busy=True)
                verdict, settlement = await self._send(sender, row, breaker)
            finally:
                with trio.move_on_after(SETTLE_S, shield=True):
                    if not scope.cancel_called:
                        await self._settle(row, settlement)
            if verdict is not None:
                await self._note_health(verdict, breaker, paused=paused)
        return True

    async def _send(
        self, sender: Sender, row: ClaimedRow, breaker: Breaker
    ) -> tuple[Verdict | None, Settlement | None]:
        """Send one row; the verdict is None where the route was not asked, the settlement None to give it back."""
        try:
            payload = msgspec.json.decode(row.payload, type=Payload)
        except msgspec.MsgspecError as error:
            return None, _unsendable(Reason.INTERNAL_ERROR, f"the frozen payload can't be read: {error}")
        if not self._core.held.usable(row.lease, self._core.now()):
            return None, None
        try:
            verdict = await self._ask(sender, payload)
        except FileMissing as error:
            return None, _unsendable(Reason.ARTIFACT_MISSING, str(error))
        except Exception as error:  # the lane's edge: a bug in one send spends an attempt of its row
            log.exception("send_crashed", route=row.route, row=row.lease.id)
            verdict = Verdict(
                VerdictKind.RETRY, error_class="internal", detail=repr(error), spends_attempt=True
            )
        failpoints.reach("outbox.sent")
        settlement = settlement_of(
            row, verdict, self._terms.retry, self._core.now(), self._core.rng, breaker_open=breaker.is_open
        )
        return verdict, settlement

    async def _ask(self, sender: Sender, payload: Payload) -> Verdict:
        """Send under a last deadline of the lane's own; silence may be a delivery, and the same key is sent again."""
        with trio.move_on_after(self._terms.timeout_s + SETTLE_S):
            return await sender.send(payload)
        return Verdict(
            VerdictKind.RETRY,
            error_class="timeout",
            detail="no end in time",
            spends_attempt=True,
            feeds_breaker=True,
        )

    async def _settle(self, row: ClaimedRow, settlement: Settlement | None) -> None:
        now = self._core.now()
        try:
            if settlement is None:
                await self._core.ledger.write(release, row.lease, now)
                log.info("row_released", route=row.route, row=row.lease.id)
                return
            result = await self._core.ledger.write(settle_row, row.lease, settlement, now)
        except LedgerUnavailable as error:
            log.warning("settlement_unknown", route=row.route, row=row.lease.id, error=str(error))
            return
        failpoints.reach("outbox.settled")
        log.info(
            "row_settled",
            route=row.route,
            row=row.lease.id,
            slot=row.slot_id,
            target=row.target_id,
            outcome=str(settlement.status) if isinstance(settlement, Settled) else "postponed",
            detail=settlement.detail,
        )
        if result is not None:
            self._core.ring(Changed("cell", str(result.cell_id)))

    async def _note_health(self, verdict: Verdict, breaker: Breaker, *, paused: bool) -> None:
        """Keep what the answer says about the route as a whole."""
        now, route = self._core.now(), self._terms.route
        after = _breaker_after(breaker, verdict, now)
        await self._core.ledger.write(save_route, route, breaker=after.encode().decode(), last_sent_at=now)
        if verdict.pauses_route:
            log.warning("route_paused", route=route, detail=verdict.detail)
            await self._core.ledger.write(pause_route, route, verdict.detail, now)
        elif paused and not verdict.feeds_breaker and verdict.error_class not in NOT_THE_RECEIVER:
            await self._core.ledger.write(resume_route, route, now)
        if breaker.is_open and not after.is_open:
            log.info("route_recovered", route=route, rows=await self._core.ledger.write(make_due, route, now))


def _state_of(db: Database, route: str) -> tuple[int | None, RouteRow | None]:
    return next_due(db, route), read_route(db, route)


def _breaker_after(breaker: Breaker, verdict: Verdict, now: int) -> Breaker:
    if verdict.feeds_breaker:
        return breaker.probing(now).failed(now)
    return breaker if verdict.error_class in NOT_THE_RECEIVER else breaker.succeeded()


def _unsendable(reason: Reason, detail: str) -> Settled:
    return Settled(IntentStatus.FAILED, reason, error_class=str(reason), detail=detail, spends=True)


async def run_outbox(
    core: Core,
    lanes: Mapping[str, tuple[LaneTerms, OpenSender]],
    only: Collection[int] | None = None,
) -> None:
    """Run every lane beside the others, each supervised by itself."""
    async with trio.open_nursery() as nursery:
        for route, (terms, open_sender) in lanes.items():
            lane = Lane(core, terms, open_sender, only)
            inbox = core.bells.lanes[route]
            nursery.start_soon(supervise, f"lane-{route}", partial(lane.run, inbox))
