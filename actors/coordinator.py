"""SlotCoordinator: admits slots by their schedule's overlap rule and rings for their cells."""

from collections.abc import Mapping

import structlog

from actors.bells import Inbox, wait_for_bell
from actors.core import Core
from pixivflow.ledger.engine import LedgerUnavailable
from pixivflow.ledger.slots import admit, slots_waiting
from protocol.messages import Changed, RunCell

log = structlog.get_logger(__name__)


async def run_coordinator(core: Core, inbox: Inbox, overlap: Mapping[str, str]) -> None:
    """Admit what is due, after each bell and every few seconds. ``overlap``: ``queue`` or ``skip``, by schedule."""
    with inbox:
        while True:
            core.pulse.beat("coordinator")
            try:
                if await core.ledger.read(slots_waiting):
                    await _admit(core, overlap)
            except LedgerUnavailable as error:
                log.warning("ledger_unavailable", actor="coordinator", error=str(error))
            await wait_for_bell(inbox, core.idle_s())


async def _admit(core: Core, overlap: Mapping[str, str]) -> None:
    admission = await core.ledger.write(admit, overlap, core.now())
    for slot_id in admission.admitted:
        log.info("slot_admitted", slot=slot_id)
        core.ring(Changed("slot", slot_id))
    for slot_id in admission.skipped:
        log.warning("slot_skipped", slot=slot_id, reason="overlap_skipped")
        core.ring(Changed("slot", slot_id))
    for cell_id in admission.cell_ids:
        core.ring(RunCell(cell_id))
