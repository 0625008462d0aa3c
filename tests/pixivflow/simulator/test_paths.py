from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.simulator import paths
from pixivflow.simulator.catalogue import JST, Catalogue

CATALOGUE = Catalogue(1, now=datetime(2026, 11, 20, 15, tzinfo=JST))
WORKS = list(CATALOGUE.works.values())


@given(st.sampled_from(WORKS), st.integers(0, 199))
def test_every_address_is_read_back_and_belongs_to_its_work_alone(work, number):
    page = number % work.page_count
    other = CATALOGUE.make_work(id=work.id, created=work.created + timedelta(seconds=1))
    urls = [paths.original("", work, page), *paths.thumbnails("", work, page).values()]
    for url in urls:
        path = paths.parse(url)
        assert (path.work_id, path.page) == (work.id, page)
        assert paths.belongs(path, work)
        assert not paths.belongs(path, other)


@pytest.mark.parametrize("path", ["/", "/img-original/img/1_p0.jpg", "/img-zip-ugoira/x.zip", "/favicon.ico"])
def test_other_addresses_are_no_pictures(path):
    assert paths.parse(path) is None


def test_a_page_that_a_work_lacks_is_not_its_own():
    work = CATALOGUE.make_work(page_count=2)
    path = paths.parse(paths.original("", work, 1).replace("_p1", "_p2"))

    assert not paths.belongs(path, work)


def test_an_address_shows_the_time_of_the_last_upload_in_japan():
    uploaded = datetime.fromisoformat("2026-11-20T20:00:00+00:00")

    assert "/2026/11/21/05/00/00/" in paths.original("", CATALOGUE.make_work(uploaded=uploaded), 0)
