from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.simulator.catalogue import JST, SimUser, SimWork
from pixivflow.simulator.words import TARGETS, matcher

WORK = SimWork(
    id=1,
    title="岬の夜明け",
    caption="a Study",
    author=SimUser(2, "n", "a"),
    created=datetime(2026, 1, 1, tzinfo=JST),
    tags=("風景", "灯台守", "レム(リゼロ)"),
)


@pytest.mark.parametrize(
    ("word", "matches"),
    [
        ("風景", True),
        ("灯台", True),
        ("LANDSCAPE", True),
        ("風景 灯台", True),
        ("風景 猫", False),
        ("猫 OR 風景", True),
        ("猫 OR 鉄道", False),
        ("風景 -猫", True),
        ("風景 -灯台", False),
        ("(猫 OR 鉄道) 風景", False),
        ("(猫 OR 灯台) 風景", True),
        ("風景 -(猫 OR 灯台)", False),
        ("レム(リゼロ)", True),
        ("レム(", True),
        ("-猫", True),
    ],
)
def test_words_are_understood(word, matches):
    assert matcher(word, "partial_match_for_tags")(WORK) is matches


def test_an_exact_search_wants_the_whole_tag():
    exact = "exact_match_for_tags"

    assert matcher("灯台守", exact)(WORK)
    assert not matcher("灯台", exact)(WORK)


def test_a_title_search_looks_at_title_and_caption_only():
    target = "title_and_caption"

    assert matcher("夜明け", target)(WORK)
    assert matcher("study", target)(WORK)
    assert not matcher("風景", target)(WORK)


def test_a_keyword_search_looks_everywhere():
    assert matcher("風景 夜明け", "keyword")(WORK)


@given(st.text(alphabet="()- ORab風景", max_size=12), st.sampled_from(TARGETS))
def test_no_text_breaks_the_reader(word, target):
    assert matcher(word, target)(WORK) in (True, False)
