"""One slot's life under any order of claims, crashes, late writes and verdicts, against a small model."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from pixivflow.ledger.binding import Bound, unbind
from pixivflow.ledger.cells import CellFailure, end_cell, fail_cell
from pixivflow.ledger.leases import LEASE_MS, Queue, release, release_unowned, renew
from pixivflow.ledger.moves import CellFacts, slot_status
from pixivflow.ledger.outbox import Postponed, Settled, settle_row
from pixivflow.ledger.sweep import reclaim_orphaned, sweep
from protocol.reasons import Reason
from protocol.states import CellStatus, IntentStatus
from protocol.works import WorkKind, WorkRef

OWNERS = st.sampled_from(["a", "b", "c"])
WORKS = st.integers(1, 3)
ROUTES = ("r", "q")


class Life(RuleBasedStateMachine):
    """The model: who was given which generation, which writes of whom succeeded, what is settled for ever."""

    cells = Bundle("cells")
    rows = Bundle("rows")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.book = self.new_book(self.folder / "ledger.sqlite3")
        self.book.slot(targets=("t1", "t2"), routes=ROUTES)
        self.holder = {}
        self.given = set()
        self.final_work = {}
        self.ended = {}

    def teardown(self):
        self.book.close()
        shutil.rmtree(self.folder)

    def holds(self, lease):
        return self.holder.get((lease.queue, lease.id)) == lease

    def takes(self, claimed):
        if claimed is None:
            return multiple()
        lease = claimed.lease
        key = (lease.queue, lease.id, lease.generation)
        assert key not in self.given, "a generation was given twice"
        former = self.holder.get(key[:2])
        assert former is None or former.until < self.book.now, "two hold one row"
        self.given.add(key)
        self.holder[key[:2]] = lease
        return lease

    def lets_go(self, lease, done, *, held):
        assert bool(done) is held
        if done:
            del self.holder[lease.queue, lease.id]

    @rule(target=cells, owner=OWNERS)
    def claim(self, owner):
        return self.takes(self.book.claim(owner=owner))

    @rule(target=rows, owner=OWNERS, route=st.sampled_from(ROUTES))
    def claim_row(self, owner, route):
        return self.takes(self.book.claim_row(route, owner=owner))

    @rule(seconds=st.sampled_from([1, 100, 200]))
    def time_passes(self, seconds):
        self.book.now += seconds * 1000

    @rule(lease=st.one_of(cells, rows))
    def renews(self, lease):
        until = self.book.do(renew, [(lease, self.book.now)], self.book.now)[lease]
        assert (until is not None) is self.holds(lease)

    @rule(lease=st.one_of(consumes(cells), consumes(rows)))
    def releases(self, lease):
        held = self.holds(lease)
        self.lets_go(lease, self.book.do(release, lease, self.book.now), held=held)

    @rule(lease=st.one_of(cells, rows))
    def an_operator_takes_it_back(self, lease):
        running = (lease.queue, lease.id) in self.holder
        assert self.book.do(release_unowned, lease.queue, lease.id, self.book.now) is running
        self.holder.pop((lease.queue, lease.id), None)

    @rule(everyone=st.booleans())
    def what_died_is_taken_back(self, everyone):
        if everyone:
            taken = self.book.do(reclaim_orphaned, self.book.now, {}, everyone=True)
            assert {(row.queue, row.id) for row in taken} == set(self.holder)
        else:
            taken = self.book.do(sweep, self.book.now, {}).reclaimed
        for row in taken:
            del self.holder[row.queue, row.id]

    @rule(lease=cells, work=WORKS)
    def binds(self, lease, work):
        owned = self.book.cell_row(lease.id)["work"]
        answer = self.book.bind(lease, work, ROUTES)
        if isinstance(answer, Bound):
            assert self.holds(lease)
            assert owned in {None, f"illustration:{work}"}
        else:
            assert self.book.cell_row(lease.id)["work"] == owned

    @rule(lease=cells, work=WORKS)
    def unbinds(self, lease, work):
        before = self.book.cell_row(lease.id)
        if self.book.do(unbind, lease, WorkRef(WorkKind.ILLUSTRATION, work), self.book.now):
            assert self.holds(lease)
            assert before["bound_generation"] == lease.generation
            assert lease.id not in self.final_work

    @rule(lease=cells, finish=st.booleans())
    def fetches(self, lease, finish):
        work = self.book.cell_row(lease.id)["work"]
        number = int((work or "illustration:1").partition(":")[2])
        files = self.book.plan(lease, number, paths=(f"{number}_p0.jpg", f"{number}_p1.jpg"))
        assert files is None or self.holds(lease)
        for file in (files or ())[: None if finish else 1]:
            assert self.book.record(lease, file)
            self.final_work.setdefault(lease.id, work)
        if self.book.commit_files(lease, number):
            assert finish or all(file.sha256 for file in files[1:])

    @rule(lease=cells)
    def commits(self, lease):
        work = self.book.cell_row(lease.id)["work"]
        number = int((work or "illustration:1").partition(":")[2])
        if self.book.commit(lease, number, ROUTES) is not None:
            assert self.holds(lease)
            del self.holder[lease.queue, lease.id]

    @rule(lease=cells, final=st.booleans())
    def fails(self, lease, final):
        failure = CellFailure(Reason.NETWORK_ERROR, "", None if final else self.book.now + 1000)
        held = self.holds(lease)
        self.lets_go(lease, self.book.do(fail_cell, lease, failure, self.book.now), held=held)

    @rule(lease=cells)
    def finds_nothing(self, lease):
        owned = self.book.cell_row(lease.id)["work"] is not None
        held = self.holds(lease) and not owned
        done = self.book.do(end_cell, lease, CellStatus.NO_CANDIDATE, self.book.now, Reason.NO_CANDIDATE)
        self.lets_go(lease, done, held=held)

    @rule(
        lease=rows,
        status=st.sampled_from([None, *(status for status in IntentStatus if status != "pending")]),
    )
    def is_answered(self, lease, status):
        settlement = (
            Postponed(self.book.now + 1000, True, "http_500", "") if status is None else Settled(status)
        )
        held = self.holds(lease)
        done = self.book.do(settle_row, lease, settlement, self.book.now)
        self.lets_go(lease, done is not None, held=held)

    @invariant()
    def one_holder_a_row_and_only_the_last_generation(self):
        for queue in Queue:
            found = self.book.rows(
                f"SELECT id, lease_generation, lease_until FROM {queue} WHERE state = 'running'"
            )
            for row_id, generation, until in found:
                lease = self.holder[queue, row_id]
                assert lease.generation == generation
                assert until >= lease.until
                assert until <= self.book.now + LEASE_MS[queue]
            assert {row[0] for row in found} == {key[1] for key in self.holder if key[0] is queue}

    @invariant()
    def no_route_has_a_work_twice(self):
        twice = self.book.rows(
            """SELECT route, work FROM deliveries WHERE status <> 'failed' GROUP BY route, work HAVING count(*) > 1"""
        )
        assert twice == []

    @invariant()
    def a_work_with_a_recorded_file_stays(self):
        for cell_id, work in self.final_work.items():
            assert self.book.cell_row(cell_id)["work"] == work

    @invariant()
    def what_has_ended_stays_as_it_was(self):
        for row in (self.book.cell_row(cell_id) for cell_id in (1, 2)):
            if CellStatus(row["status"]).terminal:
                assert self.ended.setdefault(row["id"], row) == row
            else:
                assert row["id"] not in self.ended
                assert row["ended_at"] is None

    @invariant()
    def the_slot_is_what_its_cells_are(self):
        cells = [self.book.cell_row(cell_id) for cell_id in (1, 2)]
        facts = [CellFacts(CellStatus(row["status"]), None, row["lease_generation"] > 0) for row in cells]
        assert self.book.value("SELECT status FROM slots") == slot_status(facts)
        ended = all(CellStatus(row["status"]).terminal for row in cells)
        assert self.book.events("slot_ended") == (["slot:s"] if ended else [])

    @invariant()
    def a_cell_is_in_delivery_exactly_while_a_row_of_it_is_open(self):
        in_delivery = {
            row[0] for row in self.book.rows("SELECT id FROM cells WHERE status = 'delivery_pending'")
        }
        open_rows = self.book.rows(
            """SELECT DISTINCT cell_id FROM deliveries JOIN outbox ON delivery_id = deliveries.id
               WHERE state IN ('pending', 'running')"""
        )
        assert in_delivery == {row[0] for row in open_rows}


def test_no_order_of_events_breaks_a_promise(new_book):
    class LifeHere(Life):
        pass

    LifeHere.new_book = staticmethod(new_book)
    machine = LifeHere.TestCase
    machine.settings = settings(
        max_examples=40,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
    )
    machine("runTest").runTest()
