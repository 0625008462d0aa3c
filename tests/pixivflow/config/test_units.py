import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.config.units import format_duration, format_size, parse_duration, parse_size

MOST_MS = 36_500 * 86_400_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400.0),
        ("1h30m", 5400.0),
        ("45s", 45.0),
        ("500ms", 0.5),
        ("2d", 172_800.0),
        ("1w", 604_800.0),
        ("0s", 0.0),
        ("1.5h", 5400.0),
        ("1m500ms", 60.5),
    ],
)
def test_a_duration_is_the_sum_of_its_units(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "90 m", "-5m", "1m1h", "1m2m", "5M", "1h30", "１m", "1e3s", "99999999d", "5m\n", "inf"],
)
def test_what_is_no_duration_is_refused_with_what_was_expected(text):
    with pytest.raises(ValueError, match=r'^expected a duration .*"'):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=MOST_MS))
def test_a_duration_that_was_formatted_is_read_back_to_the_millisecond(milliseconds):
    assert round(parse_duration(format_duration(milliseconds / 1000)) * 1000) == milliseconds


@given(st.text())
def test_any_text_is_a_duration_or_refused(text):
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert 0 <= seconds <= MOST_MS / 1000


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("500MiB", 500 * 2**20),
        ("8MB", 8_000_000),
        ("1.5GiB", 3 * 2**29),
        ("10 kB", 10_000),
        ("2TiB", 2**41),
    ],
)
def test_a_size_knows_binary_and_decimal_units(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "5", "MiB", "-1B", "5mib", "5Mb", "1MiB5B", "9999999TiB", "5MiB\n", "５B"]
)
def test_what_is_no_size_is_refused_with_what_was_expected(text):
    with pytest.raises(ValueError, match=r'^expected a size .*"'):
        parse_size(text)


@given(st.integers(min_value=0, max_value=2**60))
def test_a_size_that_was_formatted_is_read_back_exactly(size):
    assert parse_size(format_size(size)) == size


@given(st.text())
def test_any_text_is_a_size_or_refused(text):
    try:
        size = parse_size(text)
    except ValueError:
        return
    assert size >= 0
