from collections.abc import Awaitable, Callable

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from pixivflow.pixiv.errors import (
    AuthFailed,
    NetworkFailed,
    OwnerGone,
    PaginationError,
    RateLimited,
    RequestRefused,
    WorkDeleted,
    WorkRestricted,
)
from pixivflow.pixiv.models import Illust, SinglePage
from pixivflow.selection.candidates import Candidates, open_candidates
from pixivflow.selection.errors import CandidateUnavailable, ScanInterrupted
from pixivflow.selection.scan import (
    LISTED_LIMIT,
    Chosen,
    Ended,
    Lost,
    Nothing,
    SkipCode,
    TakeAnswer,
    scan,
)
from protocol.reasons import Reason
from protocol.specs import CellSpec, Filters, Source

RANKING = Source(mode="ranking")


class Bindings:
    """The ledger's side of a scan: what was had before, and what binding each work answers."""

    def __init__(self) -> None:
        self.had: set[int] = set()
        self.answers: dict[int, TakeAnswer | Exception] = {}
        self.tried: list[int] = []

    async def already_had(self, illust: Illust) -> bool:
        await trio.lowlevel.checkpoint()
        return illust.id in self.had

    async def take(self, illust: Illust) -> TakeAnswer:
        await trio.lowlevel.checkpoint()
        self.tried.append(illust.id)
        answer = self.answers.get(illust.id, TakeAnswer.TAKEN_BY_US)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def bindings() -> Bindings:
    return Bindings()


@pytest.fixture
def run(shelf, spec, now_ms, bindings) -> Callable[..., Awaitable[Chosen | Nothing | Lost]]:
    """Scan a ranking with the given works in their order, or another source."""

    async def go(*works: Illust, source: Source = RANKING, **facts) -> Chosen | Nothing | Lost:
        shelf.rankings["day", None] = list(works)
        cell = spec(source=source, **facts)
        candidates = open_candidates(shelf, cell.source, cell.filters, now_ms)
        return await scan(
            candidates, cell, now_ms=now_ms, already_had=bindings.already_had, take=bindings.take
        )

    return go


def codes(result) -> list[tuple[str, SkipCode]]:
    return [(skip.work, skip.code) for skip in result.report.skipped]


async def test_the_first_good_candidate_is_taken(run, illust, bindings):
    result = await run(illust(3), illust(2))
    assert isinstance(result, Chosen)
    assert result.illust == illust(3)
    assert bindings.tried == [3]
    assert (result.report.attempted, result.report.listed, result.report.ended) == (1, 1, Ended.TAKEN)


async def test_a_duplicate_first_does_not_end_the_scan(run, illust, bindings):
    bindings.had = {3}
    result = await run(illust(3), illust(2))
    assert isinstance(result, Chosen)
    assert result.illust.id == 2
    assert codes(result) == [("illustration:3", SkipCode.DUPLICATE)]


async def test_what_was_had_before_is_never_bound(run, illust, bindings):
    bindings.had = {3, 2}
    await run(illust(3), illust(2))
    assert bindings.tried == []


async def test_a_work_held_by_another_cell_is_a_duplicate_and_the_scan_goes_on(run, illust, bindings):
    bindings.answers = {3: TakeAnswer.DUPLICATE}
    result = await run(illust(3), illust(2))
    assert isinstance(result, Chosen)
    assert result.illust.id == 2
    assert codes(result) == [("illustration:3", SkipCode.DUPLICATE)]


async def test_a_lost_binding_ends_the_scan_at_once_and_is_not_no_candidate(run, illust, bindings):
    bindings.answers = {3: TakeAnswer.LOST}
    result = await run(illust(3), illust(2))
    assert isinstance(result, Lost)
    assert bindings.tried == [3]
    assert result.report.ended is Ended.LOST


@pytest.mark.parametrize("bound", [2, 3, 5, 100])
async def test_the_scan_stops_at_its_bound_of_bad_candidates(run, illust, bindings, shelf, bound):
    shelf.page_size = 30
    bindings.answers = dict.fromkeys(range(1, 103), TakeAnswer.DUPLICATE)
    result = await run(*(illust(number) for number in range(1, 110)), scan_limit=bound)
    assert isinstance(result, Nothing)
    assert result.reason is Reason.DUPLICATE_EXHAUSTED
    assert result.report.attempted == result.report.listed == len(result.report.skipped) == bound
    assert result.report.ended is Ended.SCAN_LIMIT


async def test_works_that_were_posted_before_cost_no_attempt(run, illust, bindings, shelf):
    shelf.page_size = 30
    bindings.had = set(range(1, 61))
    result = await run(*(illust(number) for number in range(1, 70)), scan_limit=2)
    assert isinstance(result, Chosen)
    assert (result.illust.id, result.report.attempted, result.report.listed) == (61, 1, 61)


async def test_a_source_of_nothing_but_posted_works_is_walked_to_the_bound_of_the_list(
    run, illust, bindings, shelf
):
    shelf.page_size = 100
    bindings.had = set(range(1, 1001))
    result = await run(*(illust(number) for number in range(1, 1001)))
    assert isinstance(result, Nothing)
    assert result.reason is Reason.DUPLICATE_EXHAUSTED
    assert (result.report.attempted, result.report.listed, result.report.ended) == (
        0,
        LISTED_LIMIT,
        Ended.LISTED_LIMIT,
    )


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_bound_below_the_limit_of_one_work_is_raised_to_it(run, illust, limit):
    assert isinstance(await run(illust(1), scan_limit=limit), Chosen)


async def test_beyond_the_bound_no_page_is_asked_for(run, illust, bindings, shelf):
    bindings.answers = dict.fromkeys((1, 2, 3), TakeAnswer.DUPLICATE)
    await run(*(illust(number) for number in range(1, 8)), scan_limit=3)
    assert shelf.pages_served == 1


async def test_what_the_list_itself_refuses_costs_no_attempt(run, illust, shelf):
    refused = [illust(number, total_bookmarks=1) for number in range(1, 60)]
    shelf.page_size = 30
    result = await run(*refused, illust(99), filters=Filters(min_bookmarks=50), scan_limit=2)
    assert isinstance(result, Chosen)
    assert result.illust.id == 99
    assert (result.report.attempted, result.report.listed) == (1, 60)


async def test_refusals_are_bounded_too(run, illust, shelf):
    shelf.page_size = 30
    works = [illust(number, total_bookmarks=1) for number in range(1, LISTED_LIMIT + 50)]
    result = await run(*works, filters=Filters(min_bookmarks=50))
    assert isinstance(result, Nothing)
    assert result.reason is Reason.FILTER_EXHAUSTED
    assert (result.report.listed, result.report.ended) == (LISTED_LIMIT, Ended.LISTED_LIMIT)
    assert shelf.pages_served == LISTED_LIMIT // 30


async def test_every_kind_of_refusal_is_reported_with_its_code(run, illust):
    result = await run(
        illust(1, visible=False),
        illust(2, type="ugoira"),
        illust(3, meta_single_page=SinglePage()),
        illust(4, x_restrict=1),
    )
    assert codes(result) == [
        ("illustration:1", SkipCode.RESTRICTED),
        ("illustration:2", SkipCode.UNSUPPORTED_MEDIA),
        ("illustration:3", SkipCode.INVALID_METADATA),
        ("illustration:4", SkipCode.FILTERED),
    ]
    assert result.report.attempted == 0


async def test_a_source_without_works_has_no_candidate(run):
    result = await run(source=Source(mode="search", tags=("nothing",)))
    assert isinstance(result, Nothing)
    assert (result.reason, result.retryable, result.report.listed) == (Reason.NO_CANDIDATE, False, 0)


async def test_a_work_found_deleted_while_it_is_bound_is_skipped(run, illust, bindings):
    bindings.answers = {3: WorkDeleted("gone"), 2: WorkRestricted("withheld")}
    result = await run(illust(3), illust(2), illust(1))
    assert isinstance(result, Chosen)
    assert codes(result) == [
        ("illustration:3", SkipCode.DELETED),
        ("illustration:2", SkipCode.RESTRICTED),
    ]


async def test_when_every_attempt_was_transient_the_scan_is_retryable(run, illust, bindings):
    bindings.answers = {number: CandidateUnavailable("an odd answer") for number in (1, 2)}
    result = await run(illust(1), illust(2))
    assert isinstance(result, Nothing)
    assert result.retryable
    assert [entry.work for entry in result.report.unavailable] == ["illustration:1", "illustration:2"]
    assert result.report.skipped == ()


OUTAGES = [NetworkFailed("reset"), AuthFailed("refused"), RateLimited("pause", retry_after_s=7)]


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: type(outage).__name__)
async def test_an_outage_while_listing_keeps_the_report_and_blames_nobody(
    run, illust, bindings, shelf, outage
):
    shelf.page_size = 2
    shelf.faults[2] = outage
    bindings.had = {1, 2}
    with pytest.raises(ScanInterrupted) as caught:
        await run(illust(1), illust(2), illust(3))
    report = caught.value.report
    assert caught.value.outage is outage
    assert caught.value.__cause__ is outage
    assert [skip.work for skip in report.skipped] == ["illustration:1", "illustration:2"]
    assert report.unavailable == ()
    assert report.ended is Ended.OUTAGE
    assert report.outage == f"{type(outage).__name__}: {outage}"


async def test_an_outage_while_binding_blames_not_the_candidate(run, illust, bindings):
    bindings.answers = {1: NetworkFailed("reset")}
    with pytest.raises(ScanInterrupted) as caught:
        await run(illust(1), illust(2))
    assert caught.value.report.skipped == ()
    assert caught.value.report.unavailable == ()
    assert bindings.tried == [1]


@pytest.mark.parametrize("error", [PaginationError("a cursor repeats"), RequestRefused("bad offset")])
async def test_what_is_wrong_with_the_walk_is_never_nothing_found(run, illust, shelf, error):
    shelf.faults[1] = error
    with pytest.raises(type(error)) as caught:
        await run(illust(1))
    assert caught.value is error


async def test_what_the_ledger_raises_passes_through(run, illust, bindings):
    class LedgerUnavailable(Exception):
        pass

    bindings.answers = {1: LedgerUnavailable("busy")}
    with pytest.raises(LedgerUnavailable):
        await run(illust(1), illust(2))
    assert bindings.tried == [1]


async def test_a_ranking_not_published_yet_is_retryable_and_no_success(run):
    result = await run()
    assert isinstance(result, Nothing)
    assert (result.reason, result.retryable) == (Reason.NO_CANDIDATE, True)
    assert "12:00 JST" in (result.report.outage or "")


async def test_a_list_of_entries_that_can_not_be_read_is_not_an_empty_one(run, shelf):
    shelf.unreadable = 30
    result = await run(source=Source(mode="artist", artist_id=7))
    assert isinstance(result, Nothing)
    assert (result.reason, result.retryable, result.report.unreadable) == (Reason.METADATA_FAILED, True, 30)


async def test_a_named_work_is_taken(run, illust, shelf):
    shelf.add(illust(42))
    result = await run(source=Source(mode="work", work=42))
    assert isinstance(result, Chosen)
    assert result.illust.id == 42


async def test_a_named_work_that_is_deleted_leaves_no_candidate_and_says_deleted(run):
    result = await run(source=Source(mode="work", work=42))
    assert isinstance(result, Nothing)
    assert (result.reason, result.retryable) == (Reason.NO_CANDIDATE, False)
    assert codes(result) == [("illustration:42", SkipCode.DELETED)]


async def test_a_named_work_that_is_withheld_is_restricted(run, illust, shelf):
    shelf.add(illust(42, visible=False))
    result = await run(source=Source(mode="work", work=42))
    assert isinstance(result, Nothing)
    assert result.reason is Reason.RESTRICTED


async def test_a_named_work_had_before_is_a_duplicate(run, illust, shelf, bindings):
    shelf.add(illust(42))
    bindings.had = {42}
    result = await run(source=Source(mode="work", work=42))
    assert isinstance(result, Nothing)
    assert result.reason is Reason.DUPLICATE_EXHAUSTED


async def test_an_artist_who_is_gone_is_named_once(run, shelf):
    shelf.faults[1] = OwnerGone("the user has left")
    result = await run(source=Source(mode="artist", artist_id=7))
    assert isinstance(result, Nothing)
    assert codes(result) == [("artist:7", SkipCode.DELETED)]


async def test_cancellation_passes_through_and_binds_nothing(run, illust, bindings):
    with trio.CancelScope() as scope:
        scope.cancel()
        await run(illust(1))
    assert scope.cancelled_caught
    assert bindings.tried == []


async def test_a_binding_that_was_made_is_answered_although_a_cancel_waits(illust, spec, now_ms, shelf):
    shelf.rankings["day", None] = [illust(1)]

    async def had(_):
        await trio.lowlevel.checkpoint()
        return False

    with trio.CancelScope() as scope:

        async def bind_and_be_cancelled(_):
            await trio.lowlevel.checkpoint()
            scope.cancel()
            return TakeAnswer.TAKEN_BY_US

        cell = spec(source=RANKING)
        result = await scan(
            open_candidates(shelf, cell.source, cell.filters, now_ms),
            cell,
            now_ms=now_ms,
            already_had=had,
            take=bind_and_be_cancelled,
        )
    assert isinstance(result, Chosen)


ANSWERS = {
    "held": TakeAnswer.DUPLICATE,
    "deleted": WorkDeleted("gone"),
    "odd": CandidateUnavailable("odd"),
    "outage": NetworkFailed("reset"),
    "bound": TakeAnswer.TAKEN_BY_US,
    "lost": TakeAnswer.LOST,
}
FATES = ["filtered", "ugoira", "had", *ANSWERS]


class OnePage:
    unreadable = 0

    def __init__(self, works: tuple[Illust, ...]) -> None:
        self._pages = [works]

    async def next_page(self) -> tuple[Illust, ...] | None:
        await trio.lowlevel.checkpoint()
        return self._pages.pop() if self._pages else None


def work_of(number: int, fate: str) -> Illust:
    return Illust(
        number,
        type="ugoira" if fate == "ugoira" else "illust",
        is_muted=fate == "filtered",
        meta_single_page=SinglePage("https://i.pximg.net/1_p0.png"),
    )


@given(st.lists(st.sampled_from(FATES), max_size=12), st.integers(1, 6))
@settings(max_examples=200)
def test_the_report_always_adds_up(fates, bound):
    fate_of = dict(enumerate(fates, start=1))
    bindings = Bindings()
    bindings.had = {number for number, fate in fate_of.items() if fate == "had"}
    bindings.answers = {number: ANSWERS[fate] for number, fate in fate_of.items() if fate in ANSWERS}
    candidates = Candidates(OnePage(tuple(work_of(*item) for item in fate_of.items())))
    spec = CellSpec(target_id="t", account="a", source=RANKING, scan_limit=bound)

    async def scenario():
        return await scan(candidates, spec, now_ms=0, already_had=bindings.already_had, take=bindings.take)

    try:
        result = trio.run(scenario)
    except ScanInterrupted as interrupted:
        result = interrupted
    report = result.report
    others = 0 if isinstance(result, Nothing) else 1
    assert report.listed == len(report.skipped) + sum(report.more.values()) + len(report.unavailable) + others
    assert report.attempted <= bound
    assert len(bindings.tried) <= report.attempted <= report.listed
