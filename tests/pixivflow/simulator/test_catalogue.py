from datetime import datetime, timedelta

from pixivflow.simulator.catalogue import JST, Catalogue

NOW = datetime(2026, 11, 20, 15, tzinfo=JST)


def test_one_seed_gives_the_same_works():
    assert Catalogue(4, now=NOW).works == Catalogue(4, now=NOW).works


def test_another_seed_gives_other_works():
    assert Catalogue(4, now=NOW).works != Catalogue(5, now=NOW).works


def test_works_lie_in_the_days_before_now():
    works = Catalogue(1, now=NOW).works.values()

    assert len(works) == 120
    assert all(NOW - timedelta(days=15) < work.created <= NOW for work in works)


def test_the_catalogue_holds_every_kind_of_work():
    works = list(Catalogue(1, now=NOW).works.values())

    assert 30 < sum("風景" in work.tags for work in works) < 50
    assert {work.type for work in works} == {"illust", "manga", "ugoira"}
    assert {work.x_restrict for work in works} == {0, 1, 2}
    assert any(work.ai_type == 2 for work in works)
    assert any(work.page_count == 200 for work in works)
    assert {extension for work in works for extension in work.extensions} == {"jpg", "png", "gif"}
    assert sum(work.stub is not None for work in works) >= 3
    assert any(work.deleted for work in works)
    assert any("/" in work.title for work in works)
    assert any(len(work.title.encode()) > 255 for work in works)


def test_a_made_work_has_the_next_id_and_is_not_yet_there():
    catalogue = Catalogue(1, now=NOW)
    work = catalogue.make_work(bookmarks=99_999)

    assert work.id == max(catalogue.works) + 1
    assert work.bookmarks == 99_999
    assert work.id not in catalogue.works


def test_the_timeline_is_ordered_and_ends_now():
    catalogue = Catalogue(1, works=3, now=NOW)
    late = catalogue.make_work(created=NOW + timedelta(seconds=1))
    early = catalogue.make_work(id=late.id + 1, created=NOW - timedelta(days=99))
    catalogue.add(late)
    catalogue.add(early)

    assert catalogue.timeline(NOW)[0] == early
    assert late not in catalogue.timeline(NOW)
    assert catalogue.timeline(NOW + timedelta(seconds=1))[-1] == late
