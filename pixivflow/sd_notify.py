"""Tells systemd how the daemon is, by datagrams to ``$NOTIFY_SOCKET``; without systemd it does nothing."""

import os
import socket
from collections.abc import Mapping

import structlog

log = structlog.get_logger(__name__)


class Notifier:
    """Sends the notifications of a ``Type=notify`` unit; never waits, never fails."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._address = _address(env.get("NOTIFY_SOCKET", ""))
        self._watchdog_interval_s = _watchdog_interval_s(env)

    @property
    def watchdog_interval_s(self) -> float | None:
        """Seconds between pings, half of what the unit allows; None when nobody waits for pings of this process."""
        return self._watchdog_interval_s

    def ready(self, status: str) -> None:
        """Say that start-up has ended."""
        self._send("READY=1", _status(status))

    def status(self, text: str) -> None:
        """Say what is going on, in one line for ``systemctl status``."""
        self._send(_status(text))

    def stopping(self) -> None:
        """Say that the shutdown has begun."""
        self._send("STOPPING=1")

    def watchdog(self) -> None:
        """Say that the daemon is alive."""
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
            ) as out:
                out.sendto("\n".join(lines).encode(errors="replace"), self._address)
        except OSError as error:
            log.debug("systemd was not notified", lines=lines, error=str(error))


def _address(name: str) -> bytes | None:
    """Return the socket's address, None where there is none of a kind we speak to."""
    if name.startswith("/"):
        return os.fsencode(name)
    if name.startswith("@"):
        return b"\0" + os.fsencode(name[1:])
    return None


def _watchdog_interval_s(env: Mapping[str, str]) -> float | None:
    if env.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    allowed_us = env.get("WATCHDOG_USEC", "")
    if not (allowed_us.isascii() and allowed_us.isdigit()) or int(allowed_us) == 0:
        return None
    return int(allowed_us) / 2_000_000


def _status(text: str) -> str:
    return "STATUS=" + " ".join(text.split())
