"""What a scan that took nothing came to: pure decisions on its report."""

from pixivflow.selection.report import ScanReport, SkipCode
from protocol.reasons import MEANINGS, Reason


def reason_of(report: ScanReport) -> Reason:
    """Name the reason to store for a scan that took nothing.

    Something that may be had another time outweighs every verdict. Then the attempted candidates speak,
    since they passed the filters; then what the list showed.
    """
    if report.unavailable:
        return Reason.METADATA_FAILED
    if report.count(SkipCode.DUPLICATE):
        return Reason.DUPLICATE_EXHAUSTED
    if report.count(SkipCode.FILTERED):
        return Reason.FILTER_EXHAUSTED
    if report.count(SkipCode.RESTRICTED, SkipCode.ACCESS_DENIED):
        return Reason.RESTRICTED
    if report.count(SkipCode.INVALID_METADATA) or report.unreadable:
        return Reason.METADATA_FAILED
    return Reason.NO_CANDIDATE


def is_retryable(report: ScanReport) -> bool:
    """Whether the same scan may find something later: the source was cut short, or the reason passes."""
    return report.outage is not None or MEANINGS[reason_of(report)].retryable
