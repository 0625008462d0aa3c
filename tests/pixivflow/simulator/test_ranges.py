import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.simulator.ranges import Unsatisfiable, part


@pytest.mark.parametrize("header", [None, "", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "lines=0-3"])
def test_what_is_no_range_means_the_whole(header):
    assert part(header, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_range_outside_cannot_be_satisfied(header):
    with pytest.raises(Unsatisfiable):
        part(header, 10)


@given(st.integers(0, 99), st.integers(0, 200))
def test_a_range_lies_inside_the_file(first, last):
    span = part(f"bytes={first}-{last}", 100)

    assert span == ((first, min(last, 99)) if first <= last else None)
