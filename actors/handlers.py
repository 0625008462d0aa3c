"""HandlerPool: hands that claim cells and run them, each in its own task, each run settled however it ends."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

import msgspec
import structlog
import trio

from actors.bells import Inbox, wait_for_bell
from actors.choosing import encode_report
from actors.collecting import Account, Collector, UnknownRoute
from actors.core import Core
from actors.failures import Failure, LeaseGone, failure_of
from actors.supervisor import supervise
from pixivflow.backoff import retry_delay
from pixivflow.ledger.cells import CellFailure, ClaimedCell, claim_cell, end_cell, fail_cell
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.health import account_refused, cool_down
from pixivflow.ledger.leases import Queue, release
from pixivflow.selection.errors import ScanInterrupted
from pixivflow.selection.scan import Nothing
from protocol.messages import Changed, RunCell
from protocol.reasons import Reason
from protocol.specs import CellSpec
from protocol.states import CellStatus
from protocol.works import WorkRef

log = structlog.get_logger(__name__)
SETTLE_S: Final = 5.0
RETRY_BASE_S: Final = 60.0
RETRY_CAP_S: Final = 3600.0


class CellEnd(msgspec.Struct, frozen=True):
    """The run ends the cell without a delivery."""

    status: CellStatus
    reason: Reason
    text: str
    report: str | None = None


class Settled(msgspec.Struct, frozen=True):
    """Nothing is left to write: the run's last transaction was its settlement."""


Ending = Settled | CellEnd | CellFailure


class HandlerPool:
    """Claims only what can start now. ``only`` narrows it to certain cells (`once` without a daemon).

    It has a hand for each place of the accounts' capacity, for selections, and ``extra_hands`` for what comes after.
    """

    def __init__(
        self,
        core: Core,
        collector: Collector,
        accounts: Mapping[str, Account],
        fingerprints: Mapping[str, str],
        *,
        extra_hands: int,
        only: Collection[int] | None = None,
    ) -> None:
        self._core = core
        self._extra_hands = extra_hands
        self._collector = collector
        self._accounts = accounts
        self._fingerprints = fingerprints
        self._only = only
        self._claiming = trio.Lock()

    async def run(self, inbox: Inbox) -> None:
        """Keep every hand at work until cancelled."""
        hands = (
            sum(int(account.capacity.total_tokens) for account in self._accounts.values()) + self._extra_hands
        )
        with inbox:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._look_around)
                for number in range(hands):
                    name = f"hand-{number}"
                    nursery.start_soon(supervise, name, partial(self._hand, name, inbox))

    async def _look_around(self) -> None:
        """Ring by itself every few seconds: a lost doorbell only delays."""
        while True:
            self._core.ring(RunCell(0))
            await trio.sleep(self._core.idle_s())

    async def _hand(self, name: str, inbox: Inbox) -> None:
        while True:
            self._core.pulse.beat(name)
            try:
                while await self._run_next(name):
                    self._core.pulse.beat(name)
            except LedgerUnavailable as error:
                log.warning("ledger_unavailable", hand=name, error=str(error))
                await trio.sleep(self._core.idle_s())
            await wait_for_bell(inbox, 60.0)

    async def _run_next(self, name: str) -> bool:
        claimed = await self._claim()
        if claimed is None:
            return False
        with self._core.held.hold(claimed.lease, self._core.now()) as scope:
            ending: Ending | None = None
            try:
                self._core.ring(RunCell(claimed.lease.id))  # let the next hand look as well
                self._core.pulse.beat(name, busy=True)
                with structlog.contextvars.bound_contextvars(slot=claimed.slot_id, target=claimed.target_id):
                    ending = await self._run(claimed)
            finally:
                if (account := self._accounts.get(claimed.account)) is not None:
                    account.give_back(claimed.lease)
                with trio.move_on_after(SETTLE_S, shield=True):
                    await self._settle(claimed, ending, lost=scope.cancel_called)
        return True

    async def _claim(self) -> ClaimedCell | None:
        """Lease the next cell, and for a selection the account's capacity with it."""
        async with self._claiming:
            selecting = tuple(
                name for name, account in self._accounts.items() if account.capacity.available_tokens > 0
            )
            claimed = await self._core.ledger.write(
                claim_cell,
                self._core.owner,
                self._core.now(),
                held=self._core.held.ids(Queue.CELLS),
                selecting=selecting,
                known=tuple(self._accounts),
                only=self._only,
            )
            if claimed is not None and claimed.work is None and claimed.account in self._accounts:
                self._accounts[claimed.account].take_nowait(claimed.lease)
            return claimed

    async def _run(self, claimed: ClaimedCell) -> Ending | None:
        """Run one cell; every error of its work ends here, as what it means for the cell. None gives it back."""
        try:
            spec = msgspec.json.decode(claimed.spec, type=CellSpec)
            work = None if claimed.work is None else WorkRef.parse(claimed.work)
        except (msgspec.MsgspecError, ValueError) as error:
            text = f"the cell can't be read: {error}"
            return CellEnd(CellStatus.FAILED, Reason.INTERNAL_ERROR, text)
        account = self._accounts.get(claimed.account)
        if account is None:
            text = f"account {claimed.account!r} is not in the configuration any more"
            return CellEnd(CellStatus.FAILED, Reason.CONFIGURATION_ERROR, text)
        with trio.move_on_after(spec.timeout_s):
            return await self._guarded(claimed, spec, account, work)
        text = f"the run took longer than {spec.timeout_s:.0f} s"
        return CellEnd(CellStatus.FAILED, Reason.EXECUTION_TIMEOUT, text)

    async def _guarded(
        self, claimed: ClaimedCell, spec: CellSpec, account: Account, work: WorkRef | None
    ) -> Ending | None:
        try:
            if work is not None:
                await self._collector.resume(claimed, spec, account, work)
                return Settled()
            result = await self._collector.select(claimed, spec, account)
            return self._nothing(claimed, result) if isinstance(result, Nothing) else Settled()
        except LeaseGone as gone:
            # giving it back is fenced, so it undoes nothing that stands
            log.warning("run_abandoned", cell=claimed.lease.id, error=repr(gone))
            return None
        except LedgerUnavailable:
            raise  # the outcome is unknown: the cell is given back, and the hand pauses before it claims again
        except UnknownRoute as error:
            return CellEnd(CellStatus.FAILED, Reason.CONFIGURATION_ERROR, str(error))
        except ScanInterrupted as interrupted:
            return await self._failure(
                claimed, failure_of(interrupted.outage), encode_report(interrupted.report)
            )
        except Exception as error:  # the hand's edge: a bug in one run spends an attempt of its cell
            failure = failure_of(error)
            if failure.reason is Reason.INTERNAL_ERROR:
                log.exception("run_crashed", cell=claimed.lease.id)
            return await self._failure(claimed, failure, None)

    def _nothing(self, claimed: ClaimedCell, nothing: Nothing) -> Ending:
        report = encode_report(nothing.report)
        text = nothing.report.outage or f"{nothing.report.listed} listed, {nothing.report.attempted} tried"
        if nothing.retryable:
            return CellFailure(nothing.reason, text, self._retry_at(claimed), report)
        status = CellStatus.FAILED if nothing.report.outage else CellStatus.NO_CANDIDATE
        return CellEnd(status, nothing.reason, text, report)

    async def _failure(self, claimed: ClaimedCell, failure: Failure, report: str | None) -> Ending:
        now = self._core.now()
        log.warning("run_failed", cell=claimed.lease.id, reason=str(failure.reason), error=failure.text)
        if failure.logged_out:
            fingerprint = self._fingerprints.get(claimed.account)
            await self._core.ledger.write(account_refused, claimed.account, failure.text, fingerprint, now)
        if failure.cooldown_s is not None:
            await self._core.ledger.write(cool_down, claimed.account, now + round(failure.cooldown_s * 1000))
        if not failure.retryable:
            return CellEnd(CellStatus.FAILED, failure.reason, failure.text, report)
        # the login itself keeps the account's cells back: they go on with the next good one
        retry_at = now if failure.logged_out else self._retry_at(claimed)
        return CellFailure(failure.reason, failure.text, retry_at, report, spends=failure.spends)

    def _retry_at(self, claimed: ClaimedCell) -> int:
        delay = retry_delay(claimed.attempts, RETRY_BASE_S, RETRY_CAP_S, self._core.rng)
        return self._core.now() + round(delay * 1000)

    async def _settle(self, claimed: ClaimedCell, ending: Ending | None, *, lost: bool) -> None:
        """Write how the run ended; an unfinished one gives its lease back, unspent."""
        now, lease = self._core.now(), claimed.lease
        if lost or isinstance(ending, Settled):
            return
        try:
            match ending:
                case None:
                    await self._core.ledger.write(release, lease, now)
                    log.info("cell_released", cell=lease.id)
                case CellFailure():
                    await self._core.ledger.write(fail_cell, lease, ending, now)
                case CellEnd(status=status, reason=reason, text=text, report=report):
                    await self._core.ledger.write(end_cell, lease, status, now, reason, text, report)
                    log.info("cell_ended", cell=lease.id, status=str(status), reason=str(reason))
        except LedgerUnavailable as error:
            log.warning("settlement_unknown", cell=lease.id, error=str(error))
        self._core.ring(Changed("cell", str(lease.id)))
