"""A receiver that is down, or says no."""

import json
import socket
from pathlib import Path
from typing import Any

from pixivflow.delivery.breaker import THRESHOLD
from pixivflow.simulator.faults import Fault
from pixivflow.simulator.server import SimulatorOptions, open_simulator
from tests.crash.audit import audit, bound_works
from tests.crash.stage import Daemon, Plan, Stage, open_stage


async def _breaker(daemon: Daemon) -> dict[str, Any]:
    routes = (await daemon.ask("daemon.status"))["routes"]
    known = {route["name"]: route["breaker"] for route in routes}
    return dict(json.loads(known.get("channel") or "{}"))


async def _breaker_opens(daemon: Daemon) -> None:
    async def is_open() -> bool:
        return "opened_at_ms" in await _breaker(daemon)

    await daemon.stage.until("the breaker opens", is_open)


def _only_row(stage: Stage) -> dict[str, Any]:
    [row] = stage.rows("SELECT state, attempts, ended_at, idempotency_key FROM outbox")
    return row


async def test_what_a_failing_receiver_did_not_take_is_delivered_once_when_it_is_back(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.simulator.faults.add(Fault("/submissions", "status", times=None, status=500))
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")
        await _breaker_opens(daemon)
        assert (await daemon.slot(slot))["slot"]["status"] == "running"
        assert await daemon.stop() == 0
        row = _only_row(stage)
        assert (row["state"], row["attempts"]) == ("pending", THRESHOLD)
        assert len(stage.simulator.receiver.attempts) == THRESHOLD

        stage.simulator.faults.clear()
        stage.let_time_pass()
        after = await stage.start_ready()
        assert await after.slot_ends(slot) == "success"
        assert await after.stop() == 0
        audit(stage)
        [route] = stage.rows("SELECT breaker FROM routes WHERE name = 'channel'")
        assert json.loads(route["breaker"]) == {}


async def test_a_failing_probe_spends_no_attempt(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.simulator.faults.add(Fault("/submissions", "status", times=None, status=500))
        daemon = await stage.start_ready()
        await daemon.trigger("k")
        await _breaker_opens(daemon)
        assert await daemon.stop() == 0
        stage.let_time_pass()
        probing = await stage.start_ready()
        await stage.until_asked("/submissions", THRESHOLD + 1)

        async def noted() -> bool:
            return (await _breaker(probing)).get("failures") == THRESHOLD + 1

        await stage.until("the probe's failure is noted", noted)
        assert await probing.stop() == 0
        assert _only_row(stage)["attempts"] == THRESHOLD


async def test_a_receiver_that_does_not_listen_costs_no_attempt(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    async with open_stage(tmp_path, Plan(receiver_url=f"http://127.0.0.1:{port}")) as stage:
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")
        await _breaker_opens(daemon)
        assert await daemon.stop() == 0
        row = _only_row(stage)
        assert (row["state"], row["attempts"]) == ("pending", 0)

        stage.let_time_pass()
        async with open_simulator(options=SimulatorOptions(receiver_port=port)) as back:
            after = await stage.start_ready()
            assert await after.slot_ends(slot) == "success"
            assert await after.stop() == 0
            assert [post.key for post in back.receiver.posts] == [row["idempotency_key"]]


async def test_after_a_rejection_the_next_slot_chooses_another_work(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.simulator.faults.add(Fault("/submissions", "conflict"))
        daemon = await stage.start_ready()
        first = await daemon.trigger("first")
        assert await daemon.slot_ends(first) == "failed"
        [detail] = (await daemon.slot(first))["cells"]
        assert (detail["cell"]["status"], detail["cell"]["reason_code"]) == ("failed", "delivery_rejected")
        second = await daemon.trigger("second")
        assert await daemon.slot_ends(second) == "success"
        assert await daemon.stop() == 0
        bound = bound_works(stage)
        assert bound[first, "one"] != bound[second, "one"]
        [post] = stage.simulator.receiver.posts
        assert f"illustration:{post.fields['work']}" == bound[second, "one"]


async def test_a_lost_answer_is_asked_for_again_and_costs_one_attempt(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        stage.simulator.faults.add(Fault("/submissions", "lose_answer"))
        daemon = await stage.start_ready()
        slot = await daemon.trigger("k")
        assert await daemon.slot_ends(slot) == "success"
        assert await daemon.stop() == 0
        audit(stage)
        assert [each.outcome for each in stage.simulator.receiver.attempts] == ["lost", "replayed"]
        assert _only_row(stage)["attempts"] == 1
