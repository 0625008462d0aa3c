"""An actor that goes on failing ends the daemon, so that its service manager starts it afresh."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.crash.stage import Plan, open_stage

WITHOUT_DELAYS = """
import os
import sys
from pathlib import Path

import trio

from actors.daemon import run_daemon
from actors.supervisor import RestartPolicy
from pixivflow.cli.config_commands import CHECKS
from pixivflow.cli.exits import expected_errors
from pixivflow.cli.logs import configure_logs
from pixivflow.clock import SystemWall
from pixivflow.config import load_config
from pixivflow.sd_notify import Notifier

config = load_config(Path(sys.argv[2]), os.environ, checks=CHECKS)
configure_logs("json", "info")
at_once = RestartPolicy(first_delay_s=0.0)
with expected_errors():
    trio.run(run_daemon, config, SystemWall(), Notifier({}), at_once, strict_exception_groups=True)
"""
"""``pixivflow run``, but for the delays between restarts."""


async def test_an_actor_that_goes_on_failing_ends_the_daemon_with_its_cause(tmp_path: Path) -> None:
    async with open_stage(tmp_path, Plan(cron="* * * * * *")) as stage:
        daemon = await stage.start(program=("-c", WITHOUT_DELAYS))
        await daemon.ready()
        with closing(sqlite3.connect(stage.state / "ledger.db", timeout=20.0)) as vandal:
            vandal.execute("DROP TABLE slots")
        assert await daemon.ended() == 1

        *log, last = daemon.log.read_text().splitlines()
        assert "failed 6 times in 60 s, at last: OperationalError: no such table: " in last
        assert last.startswith("pixivflow: ")
        restarted = [event for event in map(json.loads, log) if event["event"] == "actor_failed"]
        named = last.removeprefix("pixivflow: ").split()[0]
        assert [event["actor"] for event in restarted].count(named) == 5
        recorded = (stage.state / "flight-recorder.jsonl").read_text().splitlines()
        assert {"at", "times", "message"} == set(json.loads(recorded[-1]))
        assert not stage.socket.exists()
