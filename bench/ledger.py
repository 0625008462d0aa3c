"""What group commit gives, and what the ledger costs one caller; all figures from one run on one disk.

Usage: python -m bench.ledger [--seconds S] [--folder DIR]
"""

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeAlias

import trio
from rich.console import Console
from rich.table import Table

from pixivflow.ledger.engine import Database, Ledger, open_ledger
from pixivflow.ledger.migrate import Migration

CALLERS: Final = 128
ROUNDS: Final = 8
ROWS: Final = (
    ("single", "single", f"{CALLERS} callers, one commit each", ""),
    ("grouped", "single", f"{CALLERS} callers, group commit", ">= 10"),
    ("plain", "plain", "one caller, plain sqlite3", ""),
    ("ledger", "plain", "one caller, ledger", ">= 1,700/s or 0.80"),
)
TABLE: Final = """CREATE TABLE tasks (
    id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'pending', due_at INTEGER NOT NULL, owner TEXT,
    generation INTEGER NOT NULL DEFAULT 0, lease_until INTEGER, payload TEXT NOT NULL
) STRICT"""
DUE: Final = "CREATE INDEX tasks_due ON tasks(due_at) WHERE state = 'pending'"
INSERT: Final = "INSERT INTO tasks (due_at, payload) VALUES (?, ?) RETURNING id"
PICK: Final = "SELECT id FROM tasks WHERE state = 'pending' AND due_at <= ? ORDER BY due_at, id LIMIT 1"
LEASE: Final = """UPDATE tasks SET state = 'running', owner = 'me', lease_until = ?, generation = generation + 1
    WHERE id = ? AND state = 'pending' RETURNING generation"""
SETTLE: Final = """UPDATE tasks SET state = 'done', owner = NULL, lease_until = NULL
    WHERE id = ? AND generation = ? AND state = 'running'"""
PUT_BACK: Final = """UPDATE tasks SET state = 'pending', owner = NULL, lease_until = NULL
    WHERE id = ? AND generation = ? AND state = 'running'"""
PAYLOAD: Final = "x" * 200

Executor: TypeAlias = Callable[..., sqlite3.Cursor]
Leased: TypeAlias = tuple[int, int]


def make_tables(db: Database) -> None:
    db.execute(TABLE)
    db.execute(DUE)


MIGRATIONS: Final = (Migration(version=1, name="tasks", apply=make_tables),)


def enqueue(execute: Executor) -> int:
    row: tuple[int] = execute(INSERT, (1, PAYLOAD)).fetchone()
    return row[0]


def lease(execute: Executor, task: int) -> Leased:
    row: tuple[int] = execute(LEASE, (2, task)).fetchone()
    return task, row[0]


def claim(execute: Executor) -> Leased:
    row: tuple[int] = execute(PICK, (1,)).fetchone()
    return lease(execute, row[0])


def settle(execute: Executor, leased: Leased) -> bool:
    return execute(SETTLE, leased).rowcount == 1


def on(db: Database, step: Callable[..., Any], *args: Any) -> Any:
    return step(db.execute, *args)


def put_back(execute: Executor, leased: Leased) -> bool:
    return execute(PUT_BACK, leased).rowcount == 1


def fill(db: Database, count: int) -> None:
    for _ in range(count):
        enqueue(db.execute)


async def many_callers(folder: Path, seconds: float, largest_batch: int) -> float:
    """Lease+settle cycles a second of 128 callers; a settled row is due again, so that none runs out."""
    path = folder / f"many-{largest_batch}.sqlite3"
    cycles = 0

    async def work(ledger: Ledger, deadline: float) -> None:
        nonlocal cycles
        while trio.current_time() < deadline:
            leased = await ledger.write(on, claim)
            await ledger.write(on, put_back, leased)
            cycles += 1
        await trio.lowlevel.checkpoint()

    async with open_ledger(path, MIGRATIONS, now_ms=lambda: 0, largest_batch=largest_batch) as ledger:
        await ledger.write(fill, 2 * CALLERS)
        before = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(CALLERS):
                nursery.start_soon(work, ledger, before + seconds)
        return cycles / (trio.current_time() - before)


async def one_caller(folder: Path, seconds: float) -> float:
    """Cycles of enqueue + claim + settle a second through the ledger, three commits each."""
    cycles = 0
    async with open_ledger(folder / "one.sqlite3", MIGRATIONS, now_ms=lambda: 0) as ledger:
        before = time.perf_counter()
        while time.perf_counter() < before + seconds:
            await ledger.write(on, enqueue)
            leased = await ledger.write(on, claim)
            await ledger.write(on, settle, leased)
            cycles += 1
        return cycles / (time.perf_counter() - before)


def plain_sqlite(folder: Path, seconds: float) -> float:
    """The same cycles on a bare connection in the same thread."""
    with closing(sqlite3.connect(folder / "plain.sqlite3", isolation_level=None)) as connection:
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", TABLE, DUE):
            connection.execute(statement).fetchall()

        def committed(step: Callable[..., Any], *args: Any) -> Any:
            connection.execute("BEGIN IMMEDIATE")
            result = step(connection.execute, *args)
            connection.execute("COMMIT")
            return result

        cycles, before = 0, time.perf_counter()
        while time.perf_counter() < before + seconds:
            committed(enqueue)
            committed(settle, committed(claim))
            cycles += 1
        return cycles / (time.perf_counter() - before)


def measure(folder: Path, seconds: float) -> dict[str, list[float]]:
    """Take turns, so that a disk that others use slows all of them alike."""
    kinds: dict[str, Callable[[Path, float], float]] = {
        "single": lambda place, length: trio.run(many_callers, place, length, 1),
        "grouped": lambda place, length: trio.run(many_callers, place, length, CALLERS * 2),
        "plain": plain_sqlite,
        "ledger": lambda place, length: trio.run(one_caller, place, length),
    }
    results: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(ROUNDS):
        for kind, run in kinds.items():
            place = Path(tempfile.mkdtemp(dir=folder))
            results[kind].append(run(place, seconds / ROUNDS))
    return results


def report(results: dict[str, list[float]]) -> Table:
    best = {kind: max(figures) for kind, figures in results.items()}
    middle = {kind: statistics.median(figures) for kind, figures in results.items()}
    table = Table(
        title=f"ledger, synchronous=FULL, SQLite {sqlite3.sqlite_version}",
        caption=f"cycles a second, {ROUNDS} turns",
    )
    for heading in ("what", "best", "median", "ratio of best", "budget"):
        table.add_column(heading, justify="left" if heading == "what" else "right")
    for kind, base, name, budget in ROWS:
        ratio = f"{best[kind] / best[base]:.2f}"
        table.add_row(name, f"{best[kind]:,.0f}", f"{middle[kind]:,.0f}", ratio, budget)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the ledger's engine.")
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="length of each measurement, all turns together"
    )
    parser.add_argument("--folder", type=Path, default=None, help="a folder on the disk to measure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        Console().print(report(measure(Path(folder), options.seconds)))


if __name__ == "__main__":
    main()
