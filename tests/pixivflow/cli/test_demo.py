"""The demo as a newcomer runs it, and its judge."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from pixivflow.cli.demo.facts import (
    CellFacts,
    CellRow,
    DeliveryFacts,
    FileFacts,
    SlotFacts,
    SlotRow,
    VisiblePost,
    channel_posts,
)
from pixivflow.cli.demo.play import ended
from pixivflow.cli.demo.scenery import INBOX, ROUTES
from pixivflow.cli.demo.table import table_of
from pixivflow.cli.demo.verdict import Evidence, problems
from pixivflow.clock import SystemWall
from pixivflow.simulator.receiver import Post, Receiver
from protocol.states import CellStatus

COMMAND = [sys.executable, "-m", "pixivflow", "demo"]
PLAIN = {name: value for name, value in os.environ.items() if name not in {"FORCE_COLOR", "TTY_COMPATIBLE"}}
SLOTS = 2


def processes_of(folder: Path) -> list[str]:
    """The command lines of living processes that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found


def cell_of(slot: str, target: str, number: int) -> CellFacts:
    work = f"illustration:{number}"
    keys = {route: f"pixivflow:{route}:{work}:{slot}:{target}" for route in ROUTES[target]}
    return CellFacts(
        CellRow(target, CellStatus.SUBMITTED, work, f"work {number}"),
        (FileFacts("original", "download", f"{number}.jpg", "stored"),),
        tuple(DeliveryFacts(route, "delivered", key) for route, key in keys.items()),
    )


def flawless() -> Evidence:
    """What a flawless run of two slots leaves."""
    slots = tuple(
        SlotFacts(
            SlotRow(f"demo@{at}", "success", at, len(ROUTES), ended_at=at + 1),
            tuple(cell_of(f"demo@{at}", target, at * 10 + place) for place, target in enumerate(ROUTES)),
        )
        for at in range(1, SLOTS + 1)
    )
    cells = [cell for slot in slots for cell in slot.cells]
    return Evidence(
        slots=slots,
        posts=tuple(
            VisiblePost(each.route, each.idempotency_key, cell.cell.work, 1)
            for cell in cells
            for each in cell.deliveries
        ),
        on_disk=frozenset((file.root, file.path) for cell in cells for file in cell.files),
        bound={
            (slot.slot.slot_id, cell.cell.target_id): cell.cell.work for slot in slots for cell in slot.cells
        },
        retold=("lost", "replayed"),
    )


def changed(evidence: Evidence, **changes: object) -> Evidence:
    return msgspec.structs.replace(evidence, **changes)


def with_first_cell(evidence: Evidence, **changes: object) -> Evidence:
    first = evidence.slots[0]
    cell = msgspec.structs.replace(
        first.cells[0], cell=msgspec.structs.replace(first.cells[0].cell, **changes)
    )
    slot = msgspec.structs.replace(first, cells=(cell, *first.cells[1:]))
    return changed(evidence, slots=(slot, *evidence.slots[1:]))


def test_the_demo_ends_well_with_its_table(tmp_path: Path):
    folder = tmp_path / "d"
    ended = subprocess.run(
        [*COMMAND, "--keep", str(folder)],
        check=False,
        capture_output=True,
        text=True,
        timeout=40,
        env={**PLAIN, "COLUMNS": "120"},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr + (folder / "daemon.log").read_text()
    assert ended.stderr == ""
    table = ended.stdout[ended.stdout.index("\nslot ") :]
    assert len(re.findall(r"^demo@\d{8}T\d{6}Z  landscape  \d{9} .* channel 1$", table, re.MULTILINE)) == 3
    assert len(re.findall(r"^ +ranking    \d{9} .* 1 dropped  channel 1$", table, re.MULTILINE)) == 3
    assert (
        len(re.findall(r"^ +comic      \d{9} .* \d kept     channel 1, inbox 1$", table, re.MULTILINE)) == 3
    )
    assert "9 works, 12 posts, each exactly once" in table
    assert "SIGKILL" in ended.stdout
    assert "replayed" in ended.stdout
    assert str(folder / "pixivflow.toml") in table
    assert all(char.isprintable() or char == "\n" for char in ended.stdout)
    assert not processes_of(folder)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_and_its_daemon(tmp_path: Path, number: int):
    folder = tmp_path / "d"
    with subprocess.Popen(
        [*COMMAND, "--keep", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        for line in demo.stdout:
            if "The daemon runs" in line:
                assert processes_of(folder)
                demo.send_signal(number)
        errors = demo.stderr.read()
    assert demo.returncode == 128 + number
    assert errors == ""
    assert not [line for line in processes_of(folder) if " run" in line]


def test_a_demo_that_nobody_reads_any_more_ends_with_its_daemon(tmp_path: Path):
    folder = tmp_path / "d"
    with subprocess.Popen(
        [*COMMAND, "--keep", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        demo.stdout.readline()
        demo.stdout.close()
        errors = demo.stderr.read()
    assert demo.returncode == 1
    assert errors == ""
    assert not [line for line in processes_of(folder) if " run" in line]


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("keep me")
    ended = subprocess.run(
        [*COMMAND, "--keep", str(tmp_path)], check=False, capture_output=True, text=True, timeout=20
    )
    assert ended.returncode == 1
    assert "not empty" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_too_deep_for_a_socket_is_refused(tmp_path: Path):
    ended = subprocess.run(
        [*COMMAND, "--keep", str(tmp_path / ("x" * 110))],
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert ended.returncode == 1
    assert "shorter folder" in ended.stderr


def test_a_flawless_run_has_no_problems():
    assert problems(flawless(), SLOTS) == ()


def test_a_duplicate_in_the_receiver_is_found():
    run = flawless()
    receiver = Receiver(SystemWall())
    for number, post in enumerate(run.posts):
        if post.route != INBOX:
            receiver.posts.append(Post(f"post-{number}", post.key, {}, (), number, work=post.work))
    receiver.posts.append(msgspec.structs.replace(receiver.posts[0], id="post-again"))
    inbox = tuple(post for post in run.posts if post.route == INBOX)
    found = problems(changed(run, posts=channel_posts(receiver.posts) + inbox), SLOTS)
    key, work = receiver.posts[0].key, receiver.posts[0].work
    assert found == (f"channel: 2 posts with the key {key}", f"channel: {work} was posted 2 times")


def test_the_same_work_under_another_key_is_found():
    run = flawless()
    again = msgspec.structs.replace(run.posts[0], key="another")
    found = problems(changed(run, posts=(*run.posts, again)), SLOTS)
    assert found == (
        "channel: nobody intended the post another",
        f"channel: {run.posts[0].work} was posted 2 times",
    )


def test_a_delivered_intent_without_a_post_is_found():
    run = flawless()
    (found,) = problems(changed(run, posts=run.posts[1:]), SLOTS)
    assert "there is no post" in found


def test_a_slot_too_few_is_found():
    run = flawless()
    assert problems(run, SLOTS + 1) == ("2 slots ran, 3 had to",)


def test_a_cell_that_failed_is_found_with_its_reason():
    run = with_first_cell(flawless(), status=CellStatus.FAILED, reason_code="network_error")
    assert problems(run, SLOTS) == ("demo@1: landscape is failed (network_error), not submitted",)


def test_another_work_than_the_one_bound_before_the_crash_is_found():
    run = flawless()
    found = problems(changed(run, bound={("demo@1", "landscape"): "illustration:7"}), SLOTS)
    assert found == ("demo@1: landscape had chosen illustration:7, but has illustration:10 now",)


@pytest.mark.parametrize(
    ("path", "found"), [("x.jpg", "x.jpg has no record"), ("10.jpg.part", "10.jpg.part was left behind")]
)
def test_a_file_without_a_record_is_found(path: str, found: str):
    run = flawless()
    assert problems(changed(run, on_disk=run.on_disk | {("download", path)}), SLOTS) == (found,)


def test_a_record_without_its_file_is_found():
    run = flawless()
    found = problems(changed(run, on_disk=run.on_disk - {("download", "10.jpg")}), SLOTS)
    assert found == ("10.jpg has a record, but is not there",)


def test_a_crash_that_did_not_happen_is_found():
    (found,) = problems(changed(flawless(), retold=("lost",)), SLOTS)
    assert "not lost and then replayed" in found


def test_later_slots_do_not_make_up_for_one_that_has_not_ended():
    slots = [
        SlotFacts(SlotRow(f"demo@{at}", "running", at, 3, ended_at=None if at == 1 else at))
        for at in range(5)
    ]
    assert ended(slots) == 2


def test_a_later_slot_may_be_unfinished():
    run = flawless()
    later = SlotFacts(
        SlotRow("demo@9", "running", 9, 1),
        (
            CellFacts(
                CellRow("landscape", CellStatus.SELECTED, "illustration:99"),
                (FileFacts("original", "download", "99.jpg", "planned"),),
            ),
        ),
    )
    left = run.on_disk | {("download", "99.jpg.part")}
    assert problems(changed(run, slots=(*run.slots, later), on_disk=left), SLOTS) == ()


@pytest.mark.parametrize("width", [50, 64, 80, 120, 200])
def test_the_table_fits_the_terminal_and_cannot_be_steered_by_a_title(width: int):
    run = with_first_cell(flawless(), title="evil \x1b[2J\u202e\r\n" + "とても長い題名" * 30)
    console = Console(width=width, highlight=False)
    with console.capture() as printed:
        console.print(table_of(run.slots, run.posts, width))
    lines = printed.get().splitlines()
    assert max(map(len, lines)) <= width
    assert all(line.isprintable() for line in lines)
    assert "landscape" in printed.get()
