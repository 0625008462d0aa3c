"""Notifications over a real datagram socket."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pixivflow.sd_notify import Notifier


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "n"))
        receiver.settimeout(5)
        yield receiver


def notifier(inbox: socket.socket, **env: str) -> Notifier:
    return Notifier({"NOTIFY_SOCKET": inbox.getsockname(), **env})


def test_ready_comes_with_a_status(inbox: socket.socket) -> None:
    notifier(inbox).ready("3 schedules")
    assert inbox.recv(500) == b"READY=1\nSTATUS=3 schedules"


def test_each_event_is_one_datagram(inbox: socket.socket) -> None:
    told = notifier(inbox)
    told.status("main: login needed")
    told.watchdog()
    told.stopping()
    assert [inbox.recv(500) for _ in range(3)] == [b"STATUS=main: login needed", b"WATCHDOG=1", b"STOPPING=1"]


def test_a_status_stays_one_line(inbox: socket.socket) -> None:
    notifier(inbox).status("風景\nREADY=1")
    assert inbox.recv(500).decode() == "STATUS=風景 READY=1"


def test_an_abstract_socket_is_reached() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0pixivflow-test-{os.getpid()}")
        receiver.settimeout(5)
        Notifier({"NOTIFY_SOCKET": f"@pixivflow-test-{os.getpid()}"}).watchdog()
        assert receiver.recv(500) == b"WATCHDOG=1"


def test_a_receiver_that_does_not_read_stalls_nobody(inbox: socket.socket) -> None:
    told = notifier(inbox)
    for _ in range(1000):
        told.watchdog()
    assert inbox.recv(500) == b"WATCHDOG=1"


@pytest.mark.parametrize("name", ["", "/nowhere/notify", "vsock:2:1234", "@" + "x" * 200, "relative"])
def test_a_socket_that_cannot_be_reached_is_no_error(name: str) -> None:
    Notifier({"NOTIFY_SOCKET": name}).ready("up")


def test_outside_of_systemd_nothing_happens() -> None:
    told = Notifier({})
    told.ready("up")
    assert told.watchdog_interval_s is None


@pytest.mark.parametrize(
    ("usec", "interval"), [("3000000", 1.5), ("20000000", 10.0), ("60000000", 30.0), ("1", 5e-7)]
)
def test_the_watchdog_is_pinged_at_half_of_its_time(usec: str, interval: float) -> None:
    assert Notifier({"WATCHDOG_USEC": usec}).watchdog_interval_s == interval
    assert Notifier({"WATCHDOG_USEC": usec, "WATCHDOG_PID": str(os.getpid())}).watchdog_interval_s == interval


@pytest.mark.parametrize("usec", ["0", "", "soon", "-5", "1.5", "²"])
def test_a_watchdog_without_a_time_is_off(usec: str) -> None:
    assert Notifier({"WATCHDOG_USEC": usec}).watchdog_interval_s is None


def test_a_watchdog_meant_for_another_process_is_off() -> None:
    assert Notifier({"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "1"}).watchdog_interval_s is None
