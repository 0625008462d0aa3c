"""LeaseHeartbeat: renews every lease in hand in one write, and stops the holders of what was lost."""

from typing import Final

import structlog
import trio

from actors.core import Core
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.leases import renew

log = structlog.get_logger(__name__)
INTERVAL_S: Final = 30.0
RETRY_S: Final = 5.0


async def run_heartbeat(core: Core) -> None:
    """Renew for ever. When the ledger can't answer, holders are stopped before their leases end."""
    delay = INTERVAL_S
    while True:
        core.pulse.beat("heartbeat")
        await trio.sleep(delay * core.rng.uniform(0.8, 1.0))
        delay = INTERVAL_S if await _renew(core) else RETRY_S


async def _renew(core: Core) -> bool:
    held = core.held.snapshot()
    if not held:
        return True
    now = core.now()
    try:
        ends = await core.ledger.write(renew, held, now)
    except LedgerUnavailable as error:
        log.warning("renewal_failed", leases=len(held), error=str(error))
        for lease, _ in held:
            if not core.held.usable(lease, core.now() + int(RETRY_S * 2000)):
                core.held.lost(lease, "the lease could not be renewed in time")
        return False
    for lease, until in ends.items():
        if until is None:
            log.warning("lease_lost", row=lease.subject, generation=lease.generation)
            core.held.lost(lease, "the lease was lost")
        else:
            core.held.renewed(lease, until)
    return True
