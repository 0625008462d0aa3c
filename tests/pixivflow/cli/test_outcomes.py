"""What is said of cells that were waited for, and the exit code."""

from pathlib import Path

import msgspec
import pytest

from pixivflow.cli.outcomes import CellFacts, CellStory, Result, exit_code, result_of, told, waiting_for
from pixivflow.cli.output import plain, span
from protocol.states import CellStatus


def cell(status: CellStatus, **more) -> CellFacts:
    return CellFacts(id=7, target_id="t", account="main", status=status, state="done", due_at=0, **more)


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([], 0),
        ([Result.DONE, Result.DONE], 0),
        ([Result.NOTHING], 0),
        ([Result.NOTHING, Result.DONE], 0),
        ([Result.FAILED, Result.FAILED], 1),
        ([Result.FAILED, Result.DONE], 3),
        ([Result.FAILED, Result.NOTHING], 3),
        ([Result.PARTLY], 3),
        ([Result.OPEN, Result.FAILED], 4),
        ([Result.OPEN, Result.DONE], 4),
    ],
)
def test_the_exit_code_follows_from_the_results(results, code):
    assert exit_code(results) == code


def test_every_status_has_a_result():
    for status in CellStatus:
        assert (result_of(cell(status)) is Result.OPEN) is not status.terminal


def test_an_open_cell_of_an_account_without_login_says_what_to_do():
    lines = list(told(CellStory(cell(CellStatus.PENDING)), {}, ["main"]))
    assert "  account 'main' needs a login: pixivflow login main" in lines


def test_an_open_cell_names_its_state_once():
    facts = msgspec.structs.replace(cell(CellStatus.PENDING), state="pending")
    assert next(iter(told(CellStory(facts), {}))) == "t: still open: pending"


@pytest.mark.parametrize(
    ("facts", "name", "text"),
    [
        ({"login_needed": True, "cooldown_until": 9_000}, "waits", "pixivflow login main"),
        ({"cooldown_until": 9_000}, "waits", "Pixiv asked account main for a pause"),
        ({"cooldown_until": 4_000}, "next try", "1970-01-01"),
    ],
)
def test_a_pending_cell_tells_what_it_waits_for(facts, name, text):
    told_name, told_text = waiting_for(cell(CellStatus.PENDING, **facts), 5_000)
    assert told_name == name
    assert text in told_text


def test_a_title_cannot_steer_the_terminal():
    facts = cell(CellStatus.SUBMITTED, work="illustration:1", title="a\x1b[2Jb\u202ec")
    text = "\n".join(told(CellStory(facts), {"download": Path()}))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_plain_keeps_japanese():
    assert plain("水門の初雪") == "水門の初雪"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.6, "1m"), (3661, "1h 1m"), (90061, "1d 1h"), (-5, "0s")]
)
def test_a_span_is_rough(seconds, text):
    assert span(seconds) == text
