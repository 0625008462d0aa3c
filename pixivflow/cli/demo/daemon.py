"""The daemon as a process of its own, which never outlives the block that started it."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import trio

from pixivflow.cli.demo.scenery import Place

NOT_FOR_THE_DAEMON: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "STATE_DIRECTORY")
"""What a service manager may have told us about ourselves."""
END_S: Final = 5.0


class Daemon:
    """A running daemon."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended; negative for a signal. None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait for its end and return the exit code. Raises `trio.TooSlowError`."""
        with trio.fail_after(END_S):
            return await self._process.wait()


@asynccontextmanager
async def running(place: Place) -> AsyncGenerator[Daemon]:
    """Run the daemon with the place's configuration; its output is appended to the place's log. Raises OSError."""
    command = [sys.executable, "-m", "pixivflow", "-c", str(place.config), "run"]
    environment = {name: value for name, value in os.environ.items() if name not in NOT_FOR_THE_DAEMON}
    with place.log.open("ab") as log:
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,  # Ctrl-C at the terminal is for the demo, which ends the daemon itself
        )
    try:
        yield Daemon(process)
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
