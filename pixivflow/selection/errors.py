"""What can interrupt a selection, beside the errors of Pixiv itself.

::

    NotPublishedYet         the ranking asked for does not exist yet: not an outage, not "nothing found"
    CandidateUnavailable    one candidate can't be had this time: raised by what is asked about it
    ScanInterrupted         an outage stopped a scan; carries the report up to there
"""

from pixivflow.pixiv.errors import Outage
from pixivflow.selection.report import ScanReport


class NotPublishedYet(Exception):
    """The newest possible ranking is still empty; asking again later may help."""


class CandidateUnavailable(Exception):
    """One candidate can't be had this time, and it is not known why: no verdict about it."""


class ScanInterrupted(Exception):
    """The way to Pixiv was disturbed during a scan; no candidate is blamed.

    ``outage`` is the error itself (also the cause), ``report`` what was seen before it.
    """

    def __init__(self, report: ScanReport, outage: Outage) -> None:
        super().__init__(str(outage) or type(outage).__name__)
        self.report = report
        self.outage = outage
