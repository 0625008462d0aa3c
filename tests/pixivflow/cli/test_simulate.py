"""The simulator in the foreground, as a process of its own."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from pixivflow.cli.simulated import simulated
from pixivflow.config import load_config
from pixivflow.config.sample import example

ENDED_BY_CTRL_C = (0, 130)


class Serving:
    """A running `pixivflow simulate` and what it has printed so far."""

    def __init__(self, process: subprocess.Popen[str], text: str) -> None:
        self.process = process
        self.text = text

    def address(self, name: str) -> str:
        found = re.search(rf"^{re.escape(name)}\s+(http://\S+)$", self.text, re.MULTILINE)
        assert found, self.text
        return found[1]


def start(*options: str) -> Serving:
    process = subprocess.Popen(
        [sys.executable, "-m", "pixivflow", "simulate", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    text = ""
    while "lose_answer" not in text:
        line = process.stdout.readline()
        assert line, (text, process.communicate()[1])
        text += line
    return Serving(process, text)


def end(serving: Serving, number: int) -> tuple[int, str]:
    serving.process.send_signal(number)
    rest, errors = serving.process.communicate(timeout=10)
    return serving.process.returncode, rest + errors


@pytest.fixture
def serving() -> Iterator[Serving]:
    started = start("--works", "30")
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_on_a_signal_without_a_traceback(number):
    serving = start()
    try:
        assert httpx.get(f"{serving.address('receiver')}/ready").json() == {"ready": True}
        assert httpx.get(f"{serving.address('Pixiv (API, login)')}/v1/illust/detail").status_code == 400
    finally:
        code, printed = end(serving, number)
    assert code in ENDED_BY_CTRL_C
    assert "Traceback" not in printed


def test_the_printed_configuration_is_valid_and_points_at_the_simulator(serving: Serving, tmp_path: Path):
    snippet = (
        serving.text.partition("# ---- a configuration")[2].partition("\n")[2].partition("# ---- end")[0]
    )
    (tmp_path / "pixivflow.toml").write_text(snippet, "utf-8")
    config = load_config(tmp_path / "pixivflow.toml", {})
    assert config.pixiv.api_url == serving.address("Pixiv (API, login)")
    assert config.pixiv.image_url == serving.address("images")
    assert config.accounts["main"].refresh_token in serving.text
    assert config.routes["channel"].url == f"{serving.address('receiver')}/submissions"


def test_the_printed_fault_orders_are_taken(serving: Serving):
    orders = re.findall(r"curl (\S+/faults) -d '(\{.*\})'", serving.text)
    assert [httpx.post(url, content=order).status_code for url, order in orders] == [201, 201]


def test_a_port_that_does_not_exist_is_refused_with_the_way_out():
    command = [sys.executable, "-m", "pixivflow", "simulate", "--port-base", "0"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    assert ended.returncode == 2
    assert "expected a port from 1 to 65533; leave it out for free ports" in ended.stderr


def test_a_port_that_is_taken_ends_in_one_message(serving: Serving):
    port = serving.address("Pixiv (API, login)").rpartition(":")[2]
    command = [sys.executable, "-m", "pixivflow", "simulate", "--port-base", port]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    assert ended.returncode == 1
    assert re.fullmatch(r"pixivflow: .*(in use|already).*\n", ended.stderr), ended.stderr


async def test_a_simulated_run_says_what_works_on_its_results(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "pixivflow.toml"
    file.write_text(example(), "utf-8")
    async with simulated(load_config(file, {})) as config:
        told = capsys.readouterr().err
        view = config.storage.state_dir.parent / "pixivflow.toml"
    assert f"pixivflow -c {view} slots list" in told
    assert "trigger SCHEDULE --now" in told
    assert f"pixivflow -c {file} schedules next" in told
    assert load_config(view, {}).storage == config.storage
