"""Lanes under virtual time: what they send when, and what each verdict writes. The receivers follow a script."""

import dataclasses
import hashlib
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from actors.heartbeat import run_heartbeat
from actors.outbox import LaneTerms, run_outbox
from actors.settlement import RetryTerms
from actors.sweeper import Retention, Sweeper
from pixivflow.delivery.breaker import THRESHOLD
from pixivflow.delivery.senders import FileMissing
from pixivflow.download.store import Store
from pixivflow.ledger.binding import bind
from pixivflow.ledger.cells import claim_cell
from pixivflow.ledger.engine import Ledger, LedgerUnavailable
from pixivflow.ledger.files import NewArtifact, commit_files, plan_artifacts, record_artifact
from pixivflow.ledger.health import read_routes
from pixivflow.ledger.leases import Queue, release_unowned
from pixivflow.ledger.outbox import NewIntent, commit_delivery, settle_row
from pixivflow.ledger.slots import NewCell, add_adhoc_cell
from protocol.messages import OutboxReady
from protocol.payloads import Payload, PayloadFile, WorkFacts
from protocol.verdicts import Verdict, VerdictKind
from protocol.works import WorkKind, WorkRef

OK = Verdict(VerdictKind.ACCEPTED, remote_id="p1")
DOWN = Verdict(VerdictKind.RETRY, error_class="connect", detail="no connection", feeds_breaker=True)
BROKEN = Verdict(
    VerdictKind.RETRY, error_class="http_500", detail="HTTP 500", feeds_breaker=True, spends_attempt=True
)
REFUSED = Verdict(
    VerdictKind.RETRY, error_class="http_401", detail="HTTP 401: who are you?", pauses_route=True
)
HOUR_S = 3600
FILE = PayloadFile(1, "download", "a.png", "a.png", 3, hashlib.sha256(b"abc").hexdigest(), "image/png")


class ScriptedSender:
    """A receiver that gives its answers in order, the last one for ever; remembers when it was asked what."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.is_ready = True
        self.asked_ready = 0
        self.sent: list[tuple[float, str]] = []

    async def ready(self) -> bool:
        await trio.lowlevel.checkpoint()
        self.asked_ready += 1
        return self.is_ready

    async def send(self, payload, open_file=None) -> Verdict:
        self.sent.append((trio.current_time(), payload.key))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await trio.lowlevel.checkpoint()
        if answer == "hang":
            await trio.sleep_forever()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def at(self) -> list[float]:
        return [round(at, 1) for at, _ in self.sent]


def terms(route="channel", facts="f1", **more):
    return LaneTerms(
        route, facts, RetryTerms(30.0, 600.0), more.pop("timeout_s", 60.0), more.pop("min_interval_s", 0.0)
    )


def lanes_of(senders, **more):
    @asynccontextmanager
    async def opened(sender):
        yield sender

    return {name: (terms(name, **more), partial(opened, sender)) for name, sender in senders.items()}


def deliver(bench, number, *routes, expires_s=7 * 24 * HOUR_S, max_attempts=10, ring=True):
    """Commit a cell with an intent for each route."""
    now, work = bench.core.now(), WorkRef(WorkKind.ILLUSTRATION, number)
    routes = routes or ("channel",)
    spec = '{"routes": []}'
    cell = bench.write(add_adhoc_cell, NewCell(f"t{number}", "main", spec, now + 10**9), now)
    lease = bench.write(claim_cell, "hand", now, selecting=("main",), only=(cell,)).lease
    bench.write(bind, lease, work, "r", routes, now)
    new = [NewArtifact(0, "original", f"{number}.png")]
    [artifact] = bench.write(plan_artifacts, lease, work, "r", new, root="download", owner="archive", now=now)
    bench.write(record_artifact, lease, artifact.id, FILE.bytes, FILE.sha256, FILE.media_type, now)
    assert bench.write(commit_files, lease, WorkFacts(work, "r", "title", 1, "author"), now)
    intents = [
        NewIntent(
            Payload(f"{route}:{number}", route, work, f"t{number}", None, files=(FILE,)),
            max_attempts,
            now + expires_s * 1000,
        )
        for route in routes
    ]
    bench.write(commit_delivery, lease, "r", intents, now)
    for route in routes if ring else ():
        bench.core.ring(OutboxReady(route))
    return cell


@asynccontextmanager
async def lanes(bench, senders, **more):
    async with bench.running(
        lambda: run_heartbeat(bench.core), lambda: run_outbox(bench.core, lanes_of(senders, **more))
    ):
        yield


def row_of(bench, number=1):
    [row] = bench.rows(
        "SELECT outbox.* FROM outbox JOIN deliveries ON deliveries.id = delivery_id WHERE work = ?",
        f"illustration:{number}",
    )
    return row


def cell_of(bench, cell):
    return bench.rows("SELECT * FROM cells WHERE id = ?", cell)[0]


def route_of(bench, name="channel"):
    return next(row for row in bench.write(read_routes) if row.name == name)


@pytest.mark.parametrize(
    ("verdict", "ends"),
    [
        (OK, "done 0 None delivered None p1 submitted None"),
        (Verdict(VerdictKind.REPLAYED, "p2"), "done 0 None delivered None p2 submitted None"),
        (Verdict(VerdictKind.DUPLICATE, "p3"), "done 0 None duplicate None p3 duplicate None"),
        (
            Verdict(VerdictKind.REJECTED, error_class="http_400", detail="no"),
            "dead 1 http_400 failed delivery_rejected None failed delivery_rejected",
        ),
        (
            Verdict(VerdictKind.REJECTED, error_class="payload_too_large"),
            "dead 1 payload_too_large failed payload_too_large None failed payload_too_large",
        ),
        (
            FileMissing(FILE, "it is not there"),
            "dead 1 artifact_missing failed artifact_missing None failed artifact_missing",
        ),
    ],
)
async def test_an_end_is_written_to_row_intent_and_cell(autojump_clock, benches, verdict, ends):
    with benches(routes=("channel",)) as bench:
        cell_id = deliver(bench, 1)
        async with lanes(bench, {"channel": ScriptedSender(verdict)}):
            await trio.sleep(1)
        [found] = bench.rows(
            """SELECT outbox.state, outbox.attempts, error_class, deliveries.status AS intent, reason, remote_id
               FROM outbox JOIN deliveries ON deliveries.id = delivery_id"""
        )
        cell = cell_of(bench, cell_id)
        written = (*found.values(), cell["status"], cell["reason_code"])
        assert " ".join(map(str, written)) == ends
        assert bench.core.held.snapshot() == ()


async def test_failures_of_a_row_spend_attempts_with_growing_delays_until_it_is_dead(autojump_clock, benches):
    slow = Verdict(VerdictKind.RETRY, error_class="answer_processing", spends_attempt=True)
    sender = ScriptedSender(slow)
    with benches(routes=("channel",)) as bench:
        cell = deliver(bench, 1, max_attempts=5)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(HOUR_S)
        row = row_of(bench)
        assert (row["state"], row["attempts"]) == ("dead", 5)
        assert cell_of(bench, cell)["reason_code"] == "delivery_failed"
    waits = [later - earlier for earlier, later in zip(sender.at, sender.at[1:], strict=False)]
    assert len(waits) == 4
    assert all(30 <= wait <= 35 + 30 * 2**number for number, wait in enumerate(waits))


async def test_every_attempt_has_the_same_key(autojump_clock, benches):
    sender = ScriptedSender(BROKEN, BROKEN, OK)
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(HOUR_S)
        assert row_of(bench)["state"] == "done"
    assert [key for _, key in sender.sent] == ["channel:1"] * 3


async def test_five_failures_open_the_breaker_and_one_probe_at_a_time_asks_again(autojump_clock, benches):
    sender = ScriptedSender(DOWN)
    with benches(routes=("channel",)) as bench:
        for number in range(1, 9):
            deliver(bench, number)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(20)
            assert len(sender.sent) == THRESHOLD
            await trio.sleep(2 * HOUR_S)
            gaps = [later - earlier for earlier, later in zip(sender.at[4:], sender.at[5:], strict=False)]
            assert all(
                gap >= expected
                for gap, expected in zip(gaps, (30, 60, 120, 240, 480, 900, 900), strict=False)
            )
            assert all(row["attempts"] == 0 for row in bench.rows("SELECT attempts FROM outbox"))
            sender.answers = [OK]
            await trio.sleep(930)
        assert {row["state"] for row in bench.rows("SELECT state FROM outbox")} == {"done"}
        assert route_of(bench).breaker == "{}"
        assert len({key for _, key in sender.sent[-8:]}) == 8


@pytest.mark.parametrize("status", [503, 429])
async def test_a_receiver_that_asks_for_a_pause_gets_it_and_nothing_is_spent(autojump_clock, benches, status):
    busy = Verdict(
        VerdictKind.RETRY, error_class=f"http_{status}", retry_after_s=900, feeds_breaker=status == 503
    )
    sender = ScriptedSender(busy, OK)
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(HOUR_S)
        assert (row_of(bench)["state"], row_of(bench)["attempts"]) == ("done", 0)
    assert 900 <= sender.at[1] - sender.at[0] <= 906


async def test_a_refused_route_pauses_with_its_reason_and_is_probed_hourly(autojump_clock, benches):
    sender = ScriptedSender(REFUSED)
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        deliver(bench, 2)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(HOUR_S / 2)
            assert len(sender.sent) == 1
            assert route_of(bench).reason == "HTTP 401: who are you?"
            await trio.sleep(2 * HOUR_S)
            assert len(sender.sent) == 3
            assert sender.at[1] - sender.at[0] >= HOUR_S
            assert route_of(bench).paused_at is not None
            sender.answers = [OK]
            await trio.sleep(HOUR_S)
        assert route_of(bench).paused_at is None
        assert {(row["state"], row["attempts"]) for row in bench.rows("SELECT * FROM outbox")} == {
            ("done", 0)
        }


async def test_changed_settings_resume_a_paused_route(autojump_clock, benches):
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": ScriptedSender(REFUSED)}):
            await trio.sleep(60)
        async with lanes(bench, {"channel": (unchanged := ScriptedSender(OK))}):
            await trio.sleep(60)
        assert unchanged.sent == []
        async with lanes(bench, {"channel": ScriptedSender(OK)}, facts="f2"):
            await trio.sleep(60)
        assert row_of(bench)["state"] == "done"


async def test_a_failure_of_our_own_resumes_nothing_and_closes_no_breaker(autojump_clock, benches):
    sender = ScriptedSender(
        REFUSED, ValueError("a bug"), Verdict(VerdictKind.RETRY, error_class="disk_full"), DOWN
    )
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(2.2 * HOUR_S)
            assert len(sender.sent) == 3
            assert route_of(bench).paused_at is not None


async def test_a_bug_in_a_send_spends_an_attempt_and_the_lane_lives(autojump_clock, benches, quiet_logs):
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": ScriptedSender(ValueError("a bug"), OK)}):
            await trio.sleep(120)
        assert (row_of(bench)["state"], row_of(bench)["attempts"]) == ("done", 1)
    assert not [entry for entry in quiet_logs if entry["event"] == "actor_failed"]


async def test_an_unready_receiver_is_sent_nothing_and_people_are_told_once(
    autojump_clock, benches, quiet_logs
):
    sender = ScriptedSender(OK)
    sender.is_ready = False
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(95)
            assert (sender.sent, row_of(bench)["lease_generation"]) == ([], 0)
            assert sender.asked_ready in {4, 5}  # every half minute, and once more for the bell
            assert route_of(bench).reason == "the receiver is not ready"
            sender.is_ready = True
            await trio.sleep(31)
        assert row_of(bench)["state"] == "done"
        assert route_of(bench).reason is None
    assert [entry["log_level"] for entry in quiet_logs if entry["event"] == "route_not_ready"] == ["warning"]


async def test_the_interval_between_two_sends_is_kept_and_the_lane_is_seen_to_live(autojump_clock, benches):
    sender = ScriptedSender(OK)
    with benches(routes=("channel",)) as bench:
        for number in (1, 2, 3):
            deliver(bench, number)
        async with lanes(bench, {"channel": sender}, min_interval_s=600.0):
            for _ in range(21):
                await trio.sleep(60)
                assert bench.core.pulse.silent(150.0) == ()
    gaps = [later - earlier for earlier, later in zip(sender.at, sender.at[1:], strict=False)]
    assert gaps == pytest.approx([600, 600], abs=0.3)


async def test_the_interval_is_kept_across_a_restart(autojump_clock, benches):
    first, second = ScriptedSender(OK), ScriptedSender(OK)
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": first}, min_interval_s=600.0):
            await trio.sleep(10)
        deliver(bench, 2)
        async with lanes(bench, {"channel": second}, min_interval_s=600.0):
            for _ in range(11):
                await trio.sleep(60)
                assert bench.core.pulse.silent(150.0) == ()
    assert second.at[0] - first.at[0] == pytest.approx(600, abs=0.3)


async def test_one_sick_route_never_delays_another(autojump_clock, benches):
    sick, well = ScriptedSender("hang"), ScriptedSender(OK)
    with benches(routes=("sick", "well")) as bench:
        for number in (1, 2, 3):
            deliver(bench, number, "sick", "well")
        async with lanes(bench, {"sick": sick, "well": well}):
            await trio.sleep(0.5)
            assert len(well.sent) == 3
            assert len(sick.sent) == 1


async def test_a_send_without_end_is_ended_by_the_lane_and_counts_against_row_and_route(
    autojump_clock, benches
):
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": ScriptedSender("hang", OK)}, timeout_s=60.0):
            await trio.sleep(66)
            row = row_of(bench)
            assert (row["state"], row["attempts"], row["error_class"]) == ("pending", 1, "timeout")
            assert '"failures":1' in route_of(bench).breaker


async def test_a_shutdown_during_a_send_gives_the_row_back_unspent(autojump_clock, benches):
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": ScriptedSender("hang")}):
            await trio.sleep(1)
            assert row_of(bench)["state"] == "running"
        row = row_of(bench)
        assert (row["state"], row["attempts"], row["crashes"], bench.core.held.snapshot()) == (
            "pending",
            0,
            0,
            (),
        )


async def test_a_row_lost_during_a_send_is_settled_by_nobody_and_sent_again(autojump_clock, benches):
    sender = ScriptedSender("hang", OK)
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": sender}, timeout_s=600.0):
            await trio.sleep(1)
            assert bench.write(release_unowned, Queue.OUTBOX, row_of(bench)["id"], bench.core.now())
            await trio.sleep(40)
        assert len(sender.sent) == 2
        assert (row_of(bench)["state"], row_of(bench)["attempts"]) == ("done", 0)


async def test_a_long_send_keeps_its_lease(autojump_clock, benches):
    class Slow(ScriptedSender):
        async def send(self, payload, open_file=None):
            await trio.sleep(1000)
            return await super().send(payload)

    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        async with lanes(bench, {"channel": Slow(OK)}, timeout_s=2000.0):
            for _ in range(16):
                await trio.sleep(60)
                assert row_of(bench)["lease_until"] > bench.core.now() + 60_000
            await trio.sleep(60)
        assert (row_of(bench)["state"], row_of(bench)["lease_generation"]) == ("done", 1)


async def test_an_unreadable_payload_ends_that_row_alone(autojump_clock, benches):
    with benches(routes=("channel",)) as bench:
        deliver(bench, 1)
        bench.change("UPDATE outbox SET payload = '{}'")
        deliver(bench, 2)
        async with lanes(bench, {"channel": ScriptedSender(OK)}):
            await trio.sleep(5)
        assert (row_of(bench, 1)["state"], row_of(bench, 2)["state"]) == ("dead", "done")
        assert bench.rows("SELECT reason FROM deliveries WHERE reason IS NOT NULL") == [
            {"reason": "internal_error"}
        ]


class UnsureLedger(Ledger):
    """A ledger whose first settlement is never confirmed."""

    def __init__(self, real) -> None:
        self.real, self.unsure = real, True

    async def write(self, fn, *args, **kwargs):
        if fn is settle_row and self.unsure:
            self.unsure = False
            raise LedgerUnavailable("the write is not confirmed")
        return await self.real.write(fn, *args, **kwargs)

    def statistics(self):
        return self.real.statistics()

    async def _write(self, call):
        return await self.real._write(call)

    async def _read(self, call):
        return await self.real._read(call)


async def test_a_send_whose_settlement_is_unknown_is_repeated_with_its_key_after_the_lease(
    autojump_clock, benches
):
    sender = ScriptedSender(OK)
    with benches(routes=("channel",)) as bench:
        cell = deliver(bench, 1)
        core = dataclasses.replace(bench.core, ledger=UnsureLedger(bench.core.ledger))
        store = Store(None, trio.CapacityLimiter(1))
        sweeper = Sweeper(core, store, {}, Retention(1e9, 1e9, 1e9), trio.lowlevel.checkpoint, trio.Lock())
        async with (
            lanes(dataclasses.replace(bench, core=core), {"channel": sender}),
            bench.running(sweeper.run),
        ):
            await trio.sleep(30)
            assert (row_of(bench)["state"], len(sender.sent)) == ("running", 1)
            await trio.sleep(200)
        assert [key for _, key in sender.sent] == ["channel:1"] * 2
        assert (row_of(bench)["state"], row_of(bench)["attempts"]) == ("done", 0)
        assert cell_of(bench, cell)["status"] == "submitted"


async def test_rows_that_waited_too_long_are_abandoned_with_the_last_answer(autojump_clock, benches):
    async def nothing():
        await trio.lowlevel.checkpoint()

    with benches(routes=("channel",)) as bench:
        cell = deliver(bench, 1, expires_s=2 * HOUR_S)
        store = Store(None, trio.CapacityLimiter(1))
        sweeper = Sweeper(
            bench.core, store, {"download": bench.folder}, Retention(1e9, 1e9, 1e9), nothing, trio.Lock()
        )
        async with lanes(bench, {"channel": ScriptedSender(DOWN)}), bench.running(sweeper.run):
            await trio.sleep(2 * HOUR_S + 61)
        assert row_of(bench)["state"] == "dead"
        ended = cell_of(bench, cell)
        assert (ended["status"], ended["reason_code"]) == ("failed", "delivery_abandoned")
        assert "no connection" in ended["reason"]


async def test_a_lost_bell_only_delays(autojump_clock, benches):
    sender = ScriptedSender(OK)
    with benches(routes=("channel",)) as bench:
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(30)
            deliver(bench, 1, ring=False)
            await trio.sleep(6)
        assert len(sender.sent) == 1


@pytest.mark.parametrize("answer", [REFUSED, DOWN])
async def test_a_lane_that_must_wait_writes_nothing_while_it_waits(autojump_clock, benches, answer):
    sender = ScriptedSender(answer)
    with benches(routes=("channel",)) as bench:
        for number in range(1, 9):
            deliver(bench, number)
        async with lanes(bench, {"channel": sender}):
            await trio.sleep(1800)
            asked, batches = len(sender.sent), bench.core.ledger.statistics().batches
            await trio.sleep(1200)
            sends = len(sender.sent) - asked
            assert sends <= 2
            assert bench.core.ledger.statistics().batches - batches <= 4 * sends
