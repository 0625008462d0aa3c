"""Every request of the desk, on a real ledger."""

import msgspec
import pytest

from pixivflow.ledger.binding import bind
from pixivflow.ledger.cells import claim_cell
from pixivflow.ledger.files import NewArtifact, commit_files, plan_artifacts, record_artifact
from pixivflow.ledger.outbox import NewIntent, claim_row, commit_delivery, settle_row
from pixivflow.ledger.outbox import Settled as SettledRow
from pixivflow.ledger.slots import admit, record_missed
from pixivflow.operations.orders import OrderRefused
from protocol.messages import RunCell, SlotDue
from protocol.payloads import Payload, WorkFacts
from protocol.specs import CellSpec
from protocol.states import IntentStatus
from protocol.works import WorkKind, WorkRef

HOUR_MS = 3_600_000
WORK = WorkRef(WorkKind.ILLUSTRATION, 5)
REQUIRED = {
    "slots.get": {"slot_id": "s"},
    "cells.get": {"cell_id": 1},
    "cells.once": {"targets": ["land"]},
    "cells.get_works": {"works": [1]},
    "outbox.get": {"row_id": 1},
    "schedules.trigger": {"schedule": "hourly"},
}


async def specs(office):
    return [
        msgspec.json.decode(row[0], type=CellSpec)
        for row in await office.rows("SELECT spec FROM cells ORDER BY id")
    ]


async def test_a_manual_trigger_makes_a_slot_of_the_enabled_targets_and_rings(office):
    made = await office.ask("schedules.trigger", schedule="hourly", now=True, key="k1")
    assert (made.slot_id, made.created, len(made.cell_ids)) == ("hourly@manual-k1", True, 2)
    assert office.rung == [SlotDue("hourly@manual-k1")]
    assert [spec.target_id for spec in await specs(office)] == ["land", "sea"]
    assert {spec.timeout_s for spec in await specs(office)} == {420.0}


async def test_the_same_key_means_the_same_slot(office):
    first = await office.ask("schedules.trigger", schedule="hourly", key="k1")
    again = await office.ask("schedules.trigger", schedule="hourly", key="k1")
    assert again == msgspec.structs.replace(first, created=False)


async def test_without_a_key_every_manual_trigger_is_a_slot_of_its_own(office):
    made = {(await office.ask("schedules.trigger", schedule="hourly", now=True)).slot_id for _ in range(3)}
    assert len(made) == 3


async def test_one_target_of_a_schedule_can_be_triggered_alone(office):
    made = await office.ask("schedules.trigger", schedule="hourly", target="sea")
    assert [spec.target_id for spec in await specs(office)] == ["sea"]
    assert "manual" in made.slot_id


async def test_a_trigger_within_grace_means_the_occurrence_behind_it(office):
    office.wall.now -= office.wall.now % HOUR_MS - 10 * 60_000
    made = await office.ask("schedules.trigger", schedule="hourly")
    assert made.slot_id.startswith("hourly@2026")
    assert await office.rows("SELECT occurrence_at FROM slots") == [(office.wall.now - 10 * 60_000,)]


async def test_a_trigger_takes_up_a_missed_slot(office):
    office.wall.now -= office.wall.now % HOUR_MS - 60_000
    at = office.wall.now - 60_000
    slot_id = (await office.ask("schedules.trigger", schedule="hourly")).slot_id
    await office.ledger.write(
        lambda db: [db.execute(f"DELETE FROM {name}").rowcount for name in ("cells", "slots")]
    )
    await office.ledger.write(record_missed, "hourly", slot_id, at, office.wall.now, watermark=at)
    made = await office.ask("schedules.trigger", schedule="hourly")
    assert (made.slot_id, made.created, len(made.cell_ids)) == (slot_id, True, 2)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"schedule": "none"}, "known: hourly, idle"),
        ({"schedule": "hourly", "target": "none"}, "land, sea, off"),
        ({"schedule": "hourly", "target": "off"}, "every target is disabled"),
        ({"schedule": "idle", "now": True}, "every target is disabled"),
        ({"schedule": "idle"}, "add --now"),
    ],
)
async def test_a_trigger_that_means_nothing_is_refused_with_what_would_do(office, params, said):
    with pytest.raises(OrderRefused, match=said):
        await office.ask("schedules.trigger", **params)
    assert office.rung == []
    assert await office.rows("SELECT 1 FROM slots") == []


async def test_targets_run_once_without_a_slot(office):
    ids = await office.ask("cells.once", targets=["land", "off"])
    assert office.rung == [RunCell(cell_id) for cell_id in ids]
    assert await office.rows("SELECT slot_id FROM cells") == [(None,), (None,)]
    assert (await specs(office))[0].routes == ("inbox",)


async def test_no_named_target_means_all_enabled_ones(office):
    assert len(await office.ask("cells.once")) == 2
    assert [spec.target_id for spec in await specs(office)] == ["land", "sea"]


async def test_targets_run_once_without_delivery_are_kept(office):
    await office.ask("cells.once", targets=["land"], deliver=False)
    [spec] = await specs(office)
    assert (spec.routes, spec.storage) == ((), "persistent")


async def test_one_unknown_target_refuses_the_whole_order(office):
    with pytest.raises(OrderRefused, match=r"no target 'moon'.*land, off, sea"):
        await office.ask("cells.once", targets=["land", "moon"])
    assert await office.rows("SELECT 1 FROM cells") == []


async def test_works_fetched_by_hand_are_filtered_by_nothing_and_sent_nowhere(office):
    ids = await office.ask("cells.get_works", works=[5, 6])
    assert len(ids) == 2
    for spec, work in zip(await specs(office), (5, 6), strict=True):
        assert (spec.source.mode, spec.source.work, spec.routes, spec.account) == ("work", work, (), "main")
        assert (spec.filters.r18, spec.filters.r18g, spec.filters.ai) == ("include", "include", "any")


@pytest.mark.parametrize(
    ("method", "params"), [("cells.once", {"targets": ["land"]}), ("cells.get_works", {"works": [5]})]
)
async def test_an_order_repeated_while_its_cell_is_open_joins_it(office, method, params):
    first = await office.ask(method, **params)
    assert await office.ask(method, **params) == first
    assert await office.rows("SELECT count(*) FROM cells") == [(1,)]


async def test_an_order_repeated_after_its_cell_has_ended_makes_a_new_one(office):
    first = await office.ask("cells.once", targets=["land"])
    await office.ledger.write(lambda db: db.execute("UPDATE cells SET ended_at = 1") and None)
    assert await office.ask("cells.once", targets=["land"]) != first


async def test_an_order_without_delivery_joins_none_with_delivery(office):
    first = await office.ask("cells.once", targets=["land"])
    assert await office.ask("cells.once", targets=["land"], deliver=False) != first


async def delivered(office, made):
    """Take the slot's first cell through to its delivery."""
    now, write = office.wall.now, office.ledger.write
    await write(admit, {}, now)
    lease = (await write(claim_cell, "me", now, selecting=("main",), only=made.cell_ids[:1])).lease
    await write(bind, lease, WORK, "r", ("inbox",), now)
    new = [NewArtifact(0, "original", "5.png")]
    [artifact] = await write(plan_artifacts, lease, WORK, "r", new, root="state", owner="cell:1", now=now)
    await write(record_artifact, lease, artifact.id, 3, "ff", "image/png", now)
    await write(commit_files, lease, WorkFacts(WORK, "r", "a title", 1, "author"), now)
    payload = Payload("k", "inbox", WORK, "land", made.slot_id)
    await write(commit_delivery, lease, "r", [NewIntent(payload, 3, now + HOUR_MS)], now)
    row = await write(claim_row, "inbox", "me", now)
    await write(settle_row, row.lease, SettledRow(IntentStatus.DELIVERED, remote_id="m1"), now)
    return row.lease.id


async def test_everything_about_a_slot_can_be_asked(office):
    made = await office.ask("schedules.trigger", schedule="hourly", key="k")
    row_id = await delivered(office, made)
    slot = await office.ask("slots.get", slot_id=made.slot_id)
    assert (slot.slot.cells, slot.slot.submitted) == (2, 1)
    cell = await office.ask("cells.get", cell_id=made.cell_ids[0])
    assert (cell.cell.title, cell.files[0].path, cell.deliveries[0].remote_id) == ("a title", "5.png", "m1")
    [listed] = await office.ask("slots.list", schedule="hourly")
    assert listed == slot.slot
    assert await office.ask("slots.list", schedule="idle") == ()
    assert [view.id for view in await office.ask("cells.list", open=True)] == [made.cell_ids[1]]
    assert len(await office.ask("cells.list")) == 2
    [view] = await office.ask("outbox.list", state="done", route="inbox")
    assert view.id == row_id
    found = await office.ask("outbox.get", row_id=row_id)
    assert msgspec.json.decode(msgspec.json.encode(found))["payload"]["key"] == "k"
    assert len(await office.ask("deliveries.list", work=str(WORK))) == 1
    assert await office.ask("deliveries.list", work="illustration:6") == ()


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("slots.get", {"slot_id": "x"}, "no slot 'x'"),
        ("cells.get", {"cell_id": 9}, "no cell 9"),
        ("outbox.get", {"row_id": 9}, "no outbox row 9"),
    ],
)
async def test_what_does_not_exist_is_refused_by_its_name(office, method, params, said):
    with pytest.raises(OrderRefused, match=said):
        await office.ask(method, **params)


async def test_every_method_refuses_unknown_keys(office):
    for method in office.methods:
        with pytest.raises(msgspec.ValidationError, match="unknown field `surprise`"):
            await office.ask(method, **REQUIRED.get(method, {}), surprise=1)


@pytest.mark.parametrize("method", sorted(set(REQUIRED) - {"cells.once"}))
async def test_a_missing_key_is_named(office, method):
    with pytest.raises(msgspec.ValidationError, match=next(iter(REQUIRED[method]))):
        await office.ask(method)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("slots.list", {"limit": 0}),
        ("cells.list", {"limit": 10_001}),
        ("cells.get", {"cell_id": "1"}),
        ("schedules.trigger", {"schedule": "hourly", "key": "../x"}),
        ("cells.get_works", {"works": [0]}),
        ("cells.get_works", {"works": ["5"]}),
    ],
)
async def test_values_out_of_bounds_are_refused(office, method, params):
    with pytest.raises(msgspec.ValidationError):
        await office.ask(method, **params)


@pytest.mark.parametrize("method", ["schedules.trigger", "cells.once", "cells.get_works"])
async def test_orders_need_the_whole_configuration(bare_office, method):
    with pytest.raises(OrderRefused, match="config check"):
        await bare_office.ask(method, **REQUIRED[method])


async def test_questions_need_no_configuration(bare_office):
    assert await bare_office.ask("slots.list") == ()
    assert await bare_office.ask("outbox.list") == ()
