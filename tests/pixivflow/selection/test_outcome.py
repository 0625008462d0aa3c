import msgspec
import pytest

from pixivflow.selection.outcome import is_retryable, reason_of
from pixivflow.selection.report import REFUSALS_KEPT, Ended, ScanReport, SkipCode, Skipped, Tally, Unavailable
from protocol.reasons import Reason

C = SkipCode


def report(*codes: SkipCode, unavailable: int = 0, outage: str | None = None) -> ScanReport:
    return ScanReport(
        skipped=tuple(Skipped(f"illustration:{number}", code) for number, code in enumerate(codes)),
        unavailable=tuple(Unavailable(f"illustration:{number}", "") for number in range(unavailable)),
        outage=outage,
    )


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (report(), Reason.NO_CANDIDATE),
        (report(C.DUPLICATE, C.DUPLICATE), Reason.DUPLICATE_EXHAUSTED),
        (report(C.FILTERED, C.FILTERED), Reason.FILTER_EXHAUSTED),
        (report(C.FILTERED, C.DUPLICATE), Reason.DUPLICATE_EXHAUSTED),
        (report(C.RESTRICTED, C.RESTRICTED), Reason.RESTRICTED),
        (report(C.ACCESS_DENIED), Reason.RESTRICTED),
        (report(C.RESTRICTED, C.FILTERED), Reason.FILTER_EXHAUSTED),
        (report(C.DELETED), Reason.NO_CANDIDATE),
        (report(C.UNSUPPORTED_MEDIA), Reason.NO_CANDIDATE),
        (report(C.INVALID_METADATA, C.UNSUPPORTED_MEDIA), Reason.METADATA_FAILED),
        (report(unavailable=3), Reason.METADATA_FAILED),
        (report(C.DUPLICATE, unavailable=1), Reason.METADATA_FAILED),
    ],
)
def test_the_reason_of_a_scan_that_took_nothing(seen, reason):
    assert reason_of(seen) is reason


def test_a_list_that_can_not_be_read_is_not_an_empty_one():
    assert reason_of(ScanReport(unreadable=30)) is Reason.METADATA_FAILED
    assert is_retryable(ScanReport(unreadable=30))


def test_refusals_that_are_only_counted_speak_as_loud_as_named_ones():
    assert reason_of(ScanReport(more={C.FILTERED: 200})) is Reason.FILTER_EXHAUSTED


def test_a_scan_whose_attempts_were_all_transient_is_retryable():
    assert is_retryable(report(unavailable=2))


def test_a_scan_of_duplicates_is_final():
    assert not is_retryable(report(C.DUPLICATE))


def test_a_source_that_was_cut_short_is_retryable_although_it_showed_nothing():
    assert is_retryable(report(outage="not published yet"))


def test_a_report_survives_its_way_through_json():
    tally = Tally()
    tally.listed, tally.attempted = REFUSALS_KEPT + 5, 2
    for number in range(REFUSALS_KEPT + 3):
        tally.refuse(f"illustration:{number}", C.FILTERED, "ai = exclude: AI-generated")
    tally.skip("illustration:900", C.DUPLICATE, "posted before")
    tally.unavailable("illustration:901", "an odd answer")
    seen = tally.report(Ended.SCAN_LIMIT, unreadable=2)
    assert msgspec.json.decode(msgspec.json.encode(seen), type=ScanReport) == seen


def test_a_long_row_of_refusals_is_counted_and_the_attempts_after_it_are_still_named():
    tally = Tally()
    for number in range(REFUSALS_KEPT + 3):
        tally.refuse(f"illustration:{number}", C.FILTERED, "")
    tally.skip("illustration:900", C.DUPLICATE, "")
    seen = tally.report(Ended.SOURCE_END)
    assert seen.more == {C.FILTERED: 3}
    assert seen.count(C.FILTERED) == REFUSALS_KEPT + 3
    assert seen.skipped[-1].work == "illustration:900"
