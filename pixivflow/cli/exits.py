"""Exit codes, and how an expected error ends the program: one message, no traceback."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NoReturn

import click

from actors.control import ControlSocketUnusable
from actors.daemon import DaemonFailed
from actors.once import RunFailed
from pixivflow.cli.client import CallRefused, DaemonUnreachable, DaemonWentAway
from pixivflow.config import ConfigNotFound, ConfigRefused, ConfigUnreadable
from pixivflow.delivery.settings import RouteRefused
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.faults import LedgerRefused
from pixivflow.ledger.lockfile import LedgerLocked
from pixivflow.operations.orders import OrderRefused
from pixivflow.pixiv.errors import BadAddress, PixivError

OK: Final = 0
FAILURE: Final = 1
PARTLY: Final = 3
UNCERTAIN: Final = 4
BAD_CONFIG: Final = 65
UNREACHABLE: Final = 69
ALREADY_RUNNING: Final = 75
INTERRUPTED: Final = 130

_CODES: Final[tuple[tuple[type[Exception], int], ...]] = (
    (ConfigRefused, BAD_CONFIG),
    (ConfigNotFound, BAD_CONFIG),
    (ConfigUnreadable, BAD_CONFIG),
    (BadAddress, BAD_CONFIG),
    (RouteRefused, BAD_CONFIG),
    (LedgerLocked, ALREADY_RUNNING),
    (DaemonUnreachable, UNREACHABLE),
    (DaemonWentAway, UNCERTAIN),
    (LedgerRefused, FAILURE),
    (LedgerUnavailable, FAILURE),
    (ControlSocketUnusable, FAILURE),
    (CallRefused, FAILURE),
    (OrderRefused, FAILURE),
    (DaemonFailed, FAILURE),
    (RunFailed, FAILURE),
    (PixivError, FAILURE),
    (OSError, FAILURE),
)


def fail(message: str, code: int = FAILURE) -> NoReturn:
    """End with one message on standard error."""
    click.echo(f"pixivflow: {message}", err=True)
    sys.exit(code)


@contextmanager
def expected_errors() -> Generator[None]:
    """Turn errors that a user can do something about into a message and an exit code."""
    try:
        yield
    except tuple(kind for kind, _ in _CODES) as error:
        fail(
            str(error) or type(error).__name__, next(code for kind, code in _CODES if isinstance(error, kind))
        )
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        fail("interrupted", INTERRUPTED)  # Ctrl-C while a task of an inner nursery was at work
