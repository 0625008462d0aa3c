"""A ledger with the real tables, driven call by call: each call is one transaction of the real writer."""

import msgspec
import pytest

from pixivflow.ledger.binding import Bound, bind
from pixivflow.ledger.cells import claim_cell
from pixivflow.ledger.engine import connect_inline
from pixivflow.ledger.files import NewArtifact, commit_files, plan_artifacts, record_artifact
from pixivflow.ledger.outbox import NewIntent, claim_row, commit_delivery
from pixivflow.ledger.schema import MIGRATIONS
from pixivflow.ledger.slots import NewCell, NewSlot, add_adhoc_cell, admit, materialise
from protocol.payloads import Payload, WorkFacts
from protocol.states import Trigger
from protocol.works import WorkKind, WorkRef

START = 1_800_000_000_000
HOUR = 3_600_000


class Noting:
    """A database that notes each statement with its values."""

    def __init__(self, db):
        self._db = db
        self.seen = []

    def execute(self, sql, values=()):
        self.seen.append((sql, values))
        return self._db.execute(sql, values)


class Book:
    """The ledger and a clock that only the test moves."""

    def __init__(self, path):
        self.ledger = connect_inline(path, MIGRATIONS, durable=False)
        self.now = START

    def close(self):
        self.ledger.close()

    def do(self, fn, *args, **kwargs):
        [answer] = self.ledger._writer.run([lambda db: fn(db, *args, **kwargs)])
        return answer.unwrap()

    def rows(self, sql, *values):
        return self.do(lambda db: db.execute(sql, values).fetchall())

    def value(self, sql, *values):
        [[value]] = self.rows(sql, *values)
        return value

    def change(self, sql, *values):
        self.do(lambda db: db.execute(sql, values).rowcount)

    def plan_of(self, fn, *args, **kwargs):
        """What the planner says about each statement that ``fn`` executes, with its values bound as in real life."""

        def explained(db):
            noting = Noting(db)
            fn(noting, *args, **kwargs)
            return [
                (sql, [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()])
                for sql, values in noting.seen
                if sql.split()[0] in {"SELECT", "UPDATE", "DELETE"}
            ]

        return self.do(explained)

    def cell_row(self, cell_id):
        return self._row("cells", cell_id)

    def outbox_row(self, row_id):
        return self._row("outbox", row_id)

    def _row(self, table, row_id):
        def read(db):
            cursor = db.execute(f"SELECT * FROM {table} WHERE id = ?", (row_id,))
            names = [column[0] for column in cursor.description]
            return dict(zip(names, cursor.fetchone(), strict=True))

        return self.do(read)

    def events(self, kind):
        return [row[0] for row in self.rows("SELECT subject FROM events WHERE kind = ? ORDER BY id", kind)]

    def slot(self, slot_id="s", targets=("t",), *, routes=("r",), schedule="daily", admitted=True, **options):
        cells = tuple(
            NewCell(
                target,
                options.get("account", "main"),
                msgspec.json.encode({"routes": routes}).decode(),
                options.get("retry_until", self.now + 6 * HOUR),
            )
            for target in targets
        )
        made = self.do(
            materialise,
            NewSlot(
                slot_id,
                options.get("trigger", Trigger.CRON),
                cells,
                schedule_id=schedule,
                occurrence_at=options.get("occurrence_at", self.now),
                watermark=options.get("watermark"),
            ),
            self.now,
        )
        if admitted:
            self.do(admit, {}, self.now)
        return made.cell_ids

    def adhoc(self, target="t", routes=("r",)):
        """Add a cell that belongs to no slot and return its id."""
        spec = msgspec.json.encode({"routes": routes}).decode()
        return self.do(add_adhoc_cell, NewCell(target, "main", spec, self.now + 6 * HOUR), self.now)

    def claim(self, owner="a", **options):
        return self.do(claim_cell, owner, self.now, **{"selecting": ("main",)} | options)

    def lease(self, **options):
        return self.claim(**options).lease

    def bind(self, lease, work=1, routes=("r",), revision="v1"):
        return self.do(bind, lease, illust(work), revision, routes, self.now)

    def plan(self, lease, work=1, paths=("a.jpg",), revision="v1", **options):
        files = [NewArtifact(page, "original", path) for page, path in enumerate(paths)]
        options = {"root": "download", "owner": "archive", "now": self.now} | options
        return self.do(plan_artifacts, lease, illust(work), revision, files, **options)

    def record(self, lease, artifact, sha="0" * 64):
        return self.do(record_artifact, lease, artifact.id, 10, sha, "image/jpeg", self.now)

    def commit_files(self, lease, work=1, revision="v1"):
        return self.do(commit_files, lease, facts(work, revision), self.now)

    def store(self, lease, work=1, routes=("r",), **options):
        """Bind, plan, record and commit the files."""
        assert self.bind(lease, work, routes) == Bound()
        files = self.plan(lease, work, **options)
        assert all(self.record(lease, file) for file in files)
        assert self.commit_files(lease, work)
        return files

    def commit(self, lease, work=1, routes=("r",), revision="v1", **options):
        intents = [self.intent(lease, work, route, **options) for route in routes]
        return self.do(commit_delivery, lease, revision, intents, self.now)

    def intent(self, lease, work=1, route="r", *, max_attempts=3, expires_at=None):
        slot_id, target_id = self.rows("SELECT slot_id, target_id FROM cells WHERE id = ?", lease.id)[0]
        key = f"pixivflow:{route}:{illust(work)}:{slot_id}:{target_id}"
        payload = Payload(key, route, illust(work), target_id, slot_id)
        return NewIntent(payload, max_attempts, expires_at or self.now + 24 * HOUR)

    def delivering(self, work=1, routes=("r",), **options):
        """Bring the next cell into delivery and return its id."""
        lease = self.lease()
        options.setdefault("paths", (f"{work}.jpg",))
        expires_at = options.pop("expires_at", None)
        self.store(lease, work, routes, **options)
        assert self.commit(lease, work, routes, expires_at=expires_at).status == "delivery_pending"
        return lease.id

    def claim_row(self, route="r", owner="a", **options):
        return self.do(claim_row, route, owner, self.now, **options)


def illust(number):
    return WorkRef(WorkKind.ILLUSTRATION, number)


def facts(number, revision="v1"):
    return WorkFacts(illust(number), revision, f"work {number}", 7, "somebody")


@pytest.fixture
def book(tmp_path):
    book = Book(tmp_path / "ledger.sqlite3")
    yield book
    book.close()


@pytest.fixture
def new_book():
    """The class, for tests that open several ledgers."""
    return Book
