"""What must be true of every ledger, folder and channel once all slots have ended."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec

from protocol.payloads import Payload
from tests.crash.stage import Stage


def bound_works(stage: Stage) -> dict[tuple[str, str], str]:
    """Which work each (slot, target) owns, as a dead daemon left it."""
    found = stage.rows("SELECT slot_id, target_id, work FROM cells WHERE work IS NOT NULL")
    return {(row["slot_id"], row["target_id"]): row["work"] for row in found}


async def clean_up(stage: Stage) -> None:
    """Let the first tick of a fresh daemon remove what is not needed any more, and stop it in order."""
    if not stage.rows("SELECT 1 FROM artifacts WHERE status = 'discard'"):
        return
    daemon = await stage.start_ready()

    async def cleaned() -> bool:
        return not stage.live_rows("SELECT 1 FROM artifacts WHERE status = 'discard'")

    await stage.until("the cleaner is done", cleaned)
    assert await daemon.stop() == 0


def audit(stage: Stage, *, cell_attempts: int = 0) -> None:
    """Compare ledger, disk and receivers. All daemons have ended; neither crash nor stop spends an attempt."""
    assert "Traceback" not in stage.logs(), stage.logs()
    _ledger_is_sound(stage)
    _slots_succeeded(stage, cell_attempts)
    _channel_is_right(stage)
    _inbox_is_right(stage)
    _disk_is_right(stage)


def _ledger_is_sound(stage: Stage) -> None:
    with stage.ledger() as ledger:
        assert ledger.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert ledger.execute("PRAGMA foreign_key_check").fetchall() == []
    for queue in ("cells", "jobs", "outbox"):
        assert stage.rows(f"SELECT id FROM {queue} WHERE state IN ('running', 'pending')") == []
    assert stage.rows("SELECT * FROM events WHERE kind = 'illegal_move'") == []


def _slots_succeeded(stage: Stage, attempts: int) -> None:
    slots = stage.rows("SELECT slot_id, status, business_status FROM slots")
    assert slots
    assert {(slot["status"], slot["business_status"]) for slot in slots} == {("success", "success")}, slots
    cells = stage.rows("SELECT slot_id, target_id, status, work, attempts FROM cells")
    assert {cell["status"] for cell in cells} == {"submitted"}, cells
    assert {cell["attempts"] for cell in cells} == {attempts}
    assert len({(cell["slot_id"], cell["target_id"]) for cell in cells}) == len(cells)


def _sent(stage: Stage, route: str) -> dict[str, tuple[dict[str, Any], Payload]]:
    """Every intent of a route with its frozen message, by key; the work of each cell that names the route is there.

    A work that went there for another target is not sent again.
    """
    rows = stage.rows(
        """SELECT deliveries.*, cells.work AS owned, payload FROM deliveries JOIN cells ON cells.id = cell_id
           JOIN outbox ON delivery_id = deliveries.id WHERE deliveries.route = ?""",
        route,
    )
    assert {row["status"] for row in rows} <= {"delivered"}, rows
    cells = stage.rows("SELECT work, spec FROM cells")
    wanted = {cell["work"] for cell in cells if route in json.loads(cell["spec"])["routes"]}
    assert {row["work"] for row in rows} == wanted
    assert len({(row["slot_id"], row["target_id"]) for row in rows}) == len(rows)
    assert len({row["work"] for row in rows}) == len(rows), "the same work twice on one route"
    for row in rows:
        assert row["work"] == row["owned"]
    return {row["idempotency_key"]: (row, msgspec.json.decode(row["payload"], type=Payload)) for row in rows}


def _channel_is_right(stage: Stage) -> None:
    sent = _sent(stage, "channel")
    posts = stage.simulator.receiver.posts
    assert sorted(post.key for post in posts) == sorted(sent), "one post for each intent, and no other"
    for post in posts:
        row, payload = sent[post.key]
        assert f"illustration:{post.fields['work']}" == row["work"]
        assert [file.sha256 for file in post.files] == [file.sha256 for file in payload.files]
        assert len(post.files) == stage.simulator.catalogue.works[int(post.fields["work"])].page_count


def _inbox_is_right(stage: Stage) -> None:
    sent = _sent(stage, "inbox")
    manifests = [json.loads(path.read_text()) for path in stage.inbox.glob("*.json")]
    assert sorted(each["key"] for each in manifests) == sorted(sent), "one message for each intent"
    listed = {file["name"]: file["sha256"] for each in manifests for file in each["files"]}
    assert len(listed) == sum(len(each["files"]) for each in manifests)
    there = {path.name: _hash(path) for path in stage.inbox.glob("*") if path.is_file()}
    assert {name: found for name, found in there.items() if not name.endswith(".json")} == listed
    for each in manifests:
        row, payload = sent[each["key"]]
        assert each["work"] == row["work"]
        assert [file["sha256"] for file in each["files"]] == [file.sha256 for file in payload.files]
    hidden = {path.suffix for path in (stage.inbox / ".pixivflow").glob("*")}
    assert hidden <= {".done"}, "an unfinished message stays behind"


def _disk_is_right(stage: Stage) -> None:
    """Every file has its row; in the cache is only what the cleaner has not come to."""
    rows = stage.rows("SELECT root, path, status, bytes, sha256 FROM artifacts")
    assert {(row["root"], row["status"]) for row in rows} <= {("download", "stored"), ("state", "discard")}, (
        rows
    )
    kept = {row["path"]: (row["bytes"], row["sha256"]) for row in rows if row["root"] == "download"}
    there = {
        str(path.relative_to(stage.downloads)): (path.stat().st_size, _hash(path))
        for path in _files(stage.downloads)
    }
    assert there == kept
    passing = {stage.state / row["path"] for row in rows if row["root"] == "state"}
    assert set(_files(stage.state / "cache")) <= passing


def _files(folder: Path) -> list[Path]:
    return [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
