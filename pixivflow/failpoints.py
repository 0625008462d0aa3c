"""Named places after durable steps where a test lets the process die."""

import os
import signal

VARIABLE = "PIXIVFLOW_FAILPOINT"


def reach(name: str) -> None:
    """Die by SIGKILL if ``PIXIVFLOW_FAILPOINT`` names this place; else do nothing."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
