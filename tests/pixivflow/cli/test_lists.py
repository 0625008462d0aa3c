"""The reading commands, without a daemon and beside one."""

import os
import shutil

import pytest
import trio

from pixivflow.simulator.faults import Fault

LISTS = [
    ("slots", "list"),
    ("cells",),
    ("cells", "--open"),
    ("outbox", "list"),
    ("deliveries", "list"),
]


@pytest.mark.parametrize("command", [*LISTS, ("slots", "show", "x"), ("outbox", "show", "1"), ("status",)])
async def test_a_reading_command_makes_no_ledger_and_ends_with_69(site, command) -> None:
    ran = await site.ask(*command)
    assert ran.code == 69, ran
    assert "no ledger in" in ran.err
    assert not site.state.exists()


async def test_every_list_is_told_as_table_and_as_json_with_or_without_a_daemon(site) -> None:
    assert (await site.run("once")).code == 0
    assert (await site.ask("trigger", "yearly", "--now", "--key", "k")).code == 0
    alone = [(await site.ask(*command, "--json")).json for command in LISTS]
    async with site.daemon():
        await site.run("once")
        beside = [(await site.ask(*command, "--json")).json for command in LISTS]
        for command in LISTS:
            ran = await site.ask(*command)
            assert ran.code == 0, ran
            assert "\x1b" not in ran.out
    assert [len(rows) for rows in alone[:3]] == [1, 4, 2]
    assert all(
        rows[0].keys() == more[0].keys() for rows, more in zip(alone, beside, strict=True) if rows and more
    )
    assert all(isinstance(row["created_at"], int) for rows in beside for row in rows)


async def test_the_limit_and_the_filters_narrow_lists(site) -> None:
    await site.run("once")
    assert len((await site.ask("cells", "--limit", "1", "--json")).json) == 1
    assert len((await site.ask("outbox", "list", "--state", "dead", "--json")).json) == 0
    assert len((await site.ask("outbox", "list", "--route", "channel", "--json")).json) == 2
    work = site.simulator.receiver.posts[0].work.removeprefix("illustration:")
    address = f"https://www.pixiv.net/artworks/{work}"
    assert len((await site.ask("deliveries", "list", "--work", address, "--json")).json) == 1
    assert (await site.ask("deliveries", "list", "--work", "https://example.com/")).code == 2
    assert (await site.ask("cells", "--limit", "0")).code == 2


async def test_a_slot_is_shown_with_its_scan_files_and_deliveries(site, daemon) -> None:
    await site.run("once", "landscape")
    made = await site.ask("trigger", "yearly", "--now", "--key", "k1", "--target", "landscape")
    assert made.out == "yearly@manual-k1: made, 1 cell\n"
    receiver = site.simulator.receiver
    await receiver.until(lambda seen: len(seen.posts) == 2)
    await site.run("once", "nothing")  # by its end the slot's delivery is settled
    ran = await site.ask("slots", "show", "yearly@manual-k1")
    assert ran.code == 0, ran
    assert "duplicate (posted or stored before)" in ran.out
    assert "channel: delivered post-" in ran.out
    assert f"https://www.pixiv.net/artworks/{receiver.posts[1].work.removeprefix('illustration:')}" in ran.out
    assert str(site.folder / "works") in ran.out


async def test_a_reason_is_shown_with_what_it_means(site, daemon) -> None:
    site.simulator.faults.add(Fault(match="/submissions", kind="status", status=422, method="POST"))
    await site.ask("trigger", "yearly", "--now", "--key", "k", "--target", "landscape")
    with trio.fail_after(20):
        ended_at = None
        while ended_at is None:
            ended_at = (await site.ask("slots", "list", "--json")).json[0]["ended_at"]
    ran = await site.ask("slots", "show", "yearly@manual-k")
    assert "delivery_rejected" in ran.out
    assert "The receiver refused the work. See its answer." in ran.out


async def test_an_unknown_slot_is_refused(site, daemon) -> None:
    ran = await site.ask("slots", "show", "yearly@manual-nope")
    assert ran.code == 1
    assert "no slot 'yearly@manual-nope'; see: pixivflow slots list" in ran.err


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("slots", "list", "--schedule", "nope"), "no schedule 'nope' in "),
        (("outbox", "list", "--route", "nope"), "no route 'nope' in "),
    ],
)
async def test_an_unknown_name_is_told_from_an_empty_list(site, command, text) -> None:
    await site.ask("trigger", "yearly", "--now")
    ran = await site.ask(*command)
    assert ran.code == 1
    assert text in ran.err
    assert ("known: yearly, often" if "slots" in command else "known: channel") in ran.err
    assert (await site.ask("slots", "list", "--schedule", "often")).code == 0


async def test_a_name_that_left_the_configuration_still_finds_its_rows(site) -> None:
    await site.ask("trigger", "yearly", "--now")
    site.file.write_text(site.file.read_text().replace('id = "yearly"', 'id = "annual"'))
    ran = await site.ask("slots", "list", "--schedule", "yearly")
    assert ran.code == 0
    assert "yearly@manual-" in ran.out


async def test_a_cell_that_waits_for_a_login_says_so(site) -> None:
    site.configure("")
    await site.ask("trigger", "yearly", "--now", "--key", "k")
    await site.run("once", "nothing")
    ran = await site.ask("slots", "show", "yearly@manual-k")
    assert "waits         the account needs a login (pixivflow login main)" in ran.out


async def test_the_zone_of_times_in_a_list_is_said_once(site) -> None:
    await site.ask("trigger", "yearly", "--now")
    assert (await site.ask("cells")).out.count("times are ") == 1


async def test_a_configuration_without_schedules_says_so(site) -> None:
    site.file.write_text('[storage]\nstate_dir = "state"\n')
    ran = await site.ask("schedules", "next")
    assert ran.out == f"nothing is due: there is no schedule in {site.file}\n"


async def test_an_outbox_row_is_shown_with_its_content(site) -> None:
    await site.run("once", "landscape")
    row = (await site.ask("outbox", "list", "--json")).json[0]["id"]
    ran = await site.ask("outbox", "show", str(row))
    assert ran.code == 0, ran
    assert site.simulator.receiver.posts[0].fields["title"] in ran.out
    assert "\nform fields\n" in ran.out
    assert "failures      0/" in ran.out
    assert (await site.ask("outbox", "show", str(row), "--json")).json["payload"]["route"] == "channel"
    assert (await site.ask("outbox", "show", "99")).code == 1


async def test_the_next_times_need_no_ledger_and_no_secret(site) -> None:
    site.configure('refresh_token = "${NOT_SET}"')
    entries = (await site.ask("schedules", "next", "--count", "2", "--json")).json
    assert [entry["schedule"] for entry in entries] == ["yearly", "yearly"]
    assert entries[0]["occurrence_at"] % 1000 == 0
    assert not site.state.exists()


async def test_a_disabled_schedule_is_shown_when_it_is_named(site) -> None:
    ran = await site.ask("schedules", "next", "often", "--count", "1")
    assert ran.code == 0
    assert "Asia/Tokyo" in ran.out
    assert "is disabled" in ran.err
    unknown = await site.ask("schedules", "next", "never")
    assert unknown.code == 1
    assert "known: yearly, often" in unknown.err


async def test_a_change_of_the_clock_is_marked(site) -> None:
    site.configure(
        "",
        '[[schedules]]\nid = "gap"\ncron = "30 2 * 3 0"\ntimezone = "Europe/Berlin"\ntargets = ["landscape"]\n',
    )
    ran = await site.ask("schedules", "next", "gap", "--count", "5")
    assert "02:30 does not exist; runs at 03:00" in ran.out


async def test_every_command_has_a_short_help(site) -> None:
    ran = await site.ask("--help")
    assert ran.code == 0
    for command in (
        "login",
        "once",
        "get",
        "trigger",
        "status",
        "stop",
        "slots",
        "cells",
        "outbox",
        "deliveries",
    ):
        assert f"\n  {command} " in ran.out
    assert "More:" not in ran.out


async def test_a_bad_configuration_ends_with_65(site) -> None:
    site.file.write_text("[storage]\nstate_dri = 1\n")
    for command in (("cells",), ("login",), ("schedules", "next")):
        ran = await site.ask(*command)
        assert ran.code == 65, ran
        assert "state_dri" in ran.err


async def test_a_configuration_that_cannot_be_read_ends_with_65(site) -> None:
    site.file.chmod(0)
    command = site.command("cells")
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root reads every file, and there is no setpriv to change that")
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    ran = await trio.run_process(
        command, check=False, capture_stderr=True, cwd=site.folder, env=site.environment
    )
    assert ran.returncode == 65, ran
    assert f"{site.file}: cannot be read by the user " in ran.stderr.decode()
