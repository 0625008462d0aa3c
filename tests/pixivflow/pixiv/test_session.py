import subprocess
import sys
import textwrap

import httpx
import msgspec
import pytest
import trio
import trio.testing

from pixivflow.clock import SystemWall
from pixivflow.pixiv import oauth
from pixivflow.pixiv.credentials import StoredToken, TokenStore, fingerprint
from pixivflow.pixiv.errors import (
    AuthFailed,
    CredentialsDamaged,
    CredentialsUnsaved,
    NetworkFailed,
    RateLimited,
    ServerFailed,
)
from pixivflow.pixiv.session import AccountSession, renewal_at
from pixivflow.pixiv.settings import PixivSettings
from pixivflow.pixiv.transport import open_http

LIFE_MS = 3_600_000


class HandWall:
    """A clock moved by hand."""

    def __init__(self):
        self.ms = 1_000_000

    def now_ms(self):
        return self.ms


@pytest.fixture
def wall():
    return HandWall()


@pytest.fixture
async def http():
    async with open_http(None, 5.0, None) as client:
        yield client


@pytest.fixture
def session(settings, store, http, wall):
    return AccountSession("main", "refresh-0", store, settings, http, wall)


def test_renewal_comes_five_minutes_early_or_a_tenth_of_a_short_life():
    assert renewal_at(0, 3600) == 3_300_000
    assert renewal_at(0, 100) == 90_000


async def test_a_token_is_used_until_shortly_before_it_expires(session, pixiv, wall):
    first = await session.access_token()
    wall.ms += LIFE_MS - 300_001
    assert await session.access_token() == first
    assert pixiv.refreshes == 1
    wall.ms += 1
    assert await session.access_token() != first
    assert pixiv.refreshes == 2


async def collect(session, count, ask):
    tokens = []

    async def one():
        tokens.append(await ask(session))

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
    return tokens


async def test_twenty_callers_share_one_refresh(session, pixiv):
    pixiv.rotate = True
    tokens = await collect(session, 20, AccountSession.access_token)
    assert len(tokens) == 20
    assert len(set(tokens)) == 1
    assert pixiv.refreshes == 1


async def test_twenty_refused_callers_share_one_refresh(session, pixiv):
    refused = await session.access_token()
    tokens = await collect(session, 20, lambda session: session.renew_after(refused))
    assert set(tokens) == {"access-2"}
    assert pixiv.refreshes == 2


async def test_twenty_callers_share_one_failure(session, pixiv):
    pixiv.token_answers = [pixiv.error(429, "Rate Limit", headers=[("Retry-After", "7")])]
    failures = []

    async def one():
        try:
            await session.access_token()
        except RateLimited as exc:
            failures.append(exc.retry_after_s)

    pixiv.token_gate = trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(one)
        await pixiv.arrived.wait()
        pixiv.token_gate.set()
    assert failures == [7.0] * 20
    assert pixiv.refreshes == 1


async def test_a_token_refused_before_somebody_refreshed_asks_for_nothing(session, pixiv):
    old = await session.access_token()
    new = await session.renew_after(old)
    assert await session.renew_after(old) == new
    assert pixiv.refreshes == 2


async def test_a_cancelled_caller_does_not_break_the_others(session, pixiv):
    pixiv.token_gate = trio.Event()
    tokens = []

    async def patient():
        tokens.append(await session.access_token())

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as leader:
            async with trio.open_nursery() as inner:
                inner.start_soon(session.access_token)
                await pixiv.arrived.wait()
                for _ in range(3):
                    nursery.start_soon(patient)
                await trio.testing.wait_all_tasks_blocked()
                leader.cancel()
                pixiv.token_gate.set()
    assert leader.cancelled_caught
    assert tokens == ["access-1"] * 3
    assert pixiv.refreshes == 1


async def test_when_the_first_caller_is_cut_off_another_refreshes(session, pixiv):
    pixiv.token_gate = trio.Event()
    tokens = []

    async def patient():
        tokens.append(await session.access_token())

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as leader:
            async with trio.open_nursery() as inner:
                inner.start_soon(session.access_token)
                await pixiv.arrived.wait()
                for _ in range(3):
                    nursery.start_soon(patient)
                await trio.testing.wait_all_tasks_blocked()
                leader.cancel()
        pixiv.token_gate.set()
    assert len(set(tokens)) == 1
    assert len(tokens) == 3
    assert pixiv.refreshes == 2


async def test_a_rotated_token_is_not_lost_when_the_caller_is_cancelled(session, pixiv, store):
    pixiv.rotate = True
    pixiv.token_gate = trio.Event()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.access_token)
            await pixiv.arrived.wait()
            scope.cancel()
            pixiv.token_gate.set()
    assert store.load("main").refresh_token == "refresh-1"


async def test_the_answer_is_stored_with_its_owner_and_without_the_mail_address(session, store):
    await session.access_token()
    stored = store.load("main")
    assert stored == StoredToken(
        "refresh-0", 1_000_000, fingerprint("refresh-0"), "90000001", "collector-example", True, 2
    )
    assert "invalid" not in store.path("main").read_text()


async def test_an_unchanged_token_is_not_written_again(session, store, wall):
    await session.access_token()
    before = store.path("main").stat().st_ino
    wall.ms += LIFE_MS
    await session.access_token()
    assert store.path("main").stat().st_ino == before


async def test_a_rotated_token_is_stored_and_used_next(session, pixiv, store, wall):
    pixiv.rotate = True
    await session.access_token()
    assert store.load("main").refresh_token == "refresh-1"
    wall.ms += LIFE_MS
    await session.access_token()
    assert store.load("main").refresh_token == "refresh-2"


async def test_a_restarted_session_goes_on_with_the_rotated_token(pixiv, settings, store, http, wall):
    pixiv.rotate = True
    await AccountSession("main", "refresh-0", store, settings, http, wall).access_token()
    again = AccountSession("main", "refresh-0", store, settings, http, wall)
    assert await again.access_token() == "access-2"


async def test_a_token_file_that_can_not_be_read_stops_before_any_request(session, pixiv, store):
    store.path("main").mkdir(parents=True)
    with pytest.raises(CredentialsDamaged):
        await session.access_token()
    assert pixiv.refreshes == 0


async def test_a_failed_save_raises_and_the_new_token_is_saved_later(pixiv, settings, http, wall, tmp_path):
    class FullDisk(TokenStore):
        full = True

        def _replace(self, path, content):
            if self.full:
                raise OSError(28, "No space left on device")
            super()._replace(path, content)

    store = FullDisk(tmp_path)
    session = AccountSession("main", "refresh-0", store, settings, http, wall)
    pixiv.rotate = True
    with pytest.raises(CredentialsUnsaved, match="No space left"):
        await session.access_token()
    assert store.load("main") is None
    store.full = False
    assert await session.access_token() == "access-2"
    assert store.load("main").refresh_token == "refresh-2"


async def test_no_token_at_all_names_the_command(settings, store, http, wall, pixiv):
    session = AccountSession("main", None, store, settings, http, wall)
    with pytest.raises(AuthFailed) as caught:
        await session.access_token()
    assert str(caught.value) == "account 'main' has no login; run: pixivflow login main"
    assert pixiv.refreshes == 0


async def test_a_login_made_later_is_picked_up(settings, store, http, wall):
    session = AccountSession("main", None, store, settings, http, wall)
    with pytest.raises(AuthFailed):
        await session.access_token()
    store.save("main", StoredToken("refresh-0", 5))
    assert await session.access_token() == "access-1"


async def test_a_refused_token_names_account_and_command_but_not_the_token(
    settings, store, http, wall, pixiv
):
    session = AccountSession("main", "SECRET-old", store, settings, http, wall)
    with pytest.raises(AuthFailed) as caught:
        await session.access_token()
    assert "'main'" in str(caught.value)
    assert "pixivflow login main" in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert pixiv.refreshes == 1


async def test_a_login_made_while_the_old_token_was_refused_saves_the_account(
    settings, store, http, wall, pixiv
):
    store.save("main", StoredToken("stale", 5))
    session = AccountSession("main", None, store, settings, http, wall)
    pixiv.token_gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(session.access_token)
        await pixiv.arrived.wait()
        store.save("main", StoredToken("refresh-0", 6))
        pixiv.token_gate.set()
    assert await session.access_token() == "access-1"
    assert pixiv.refreshes == 2


@pytest.mark.parametrize("status", [403, 503, 200])
async def test_a_challenge_page_leaves_the_account_alive(session, pixiv, status):
    pixiv.token_answers = [pixiv.html(status)]
    with pytest.raises(ServerFailed, match="challenge page"):
        await session.access_token()
    assert await session.access_token() == "access-1"


async def test_a_cut_answer_is_a_network_failure(session, pixiv):
    pixiv.token_answers = [pixiv.answer(body=b'{"access_token": "SECRET', cut=True)]
    with pytest.raises(NetworkFailed) as caught:
        await session.access_token()
    assert "SECRET" not in str(caught.value)


async def test_an_unreachable_token_endpoint_is_a_network_failure(settings, store, http, wall):
    nowhere = msgspec.structs.replace(settings, oauth_url="http://127.0.0.1:1")
    session = AccountSession("main", "refresh-0", store, nowhere, http, wall)
    with pytest.raises(NetworkFailed):
        await session.access_token()


async def test_an_endless_answer_meets_the_total_deadline(store, wall, autojump_clock):
    class Silent(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request):
            await trio.sleep_forever()

    async with open_http(None, 30.0, Silent()) as http:
        settings = PixivSettings()
        with pytest.raises(NetworkFailed, match="within 60 s"):
            await oauth.ask(oauth.refresh_request("r", settings, 0), http, settings, 0)


async def test_a_crash_right_after_the_save_leaves_the_new_token_on_disk(pixiv, store):
    pixiv.rotate = True
    script = textwrap.dedent(f"""
        import trio
        from pathlib import Path
        from pixivflow.clock import SystemWall
        from pixivflow.pixiv.credentials import TokenStore
        from pixivflow.pixiv.session import AccountSession
        from pixivflow.pixiv.settings import PixivSettings
        from pixivflow.pixiv.transport import open_http

        async def main():
            settings = PixivSettings(api_url={pixiv.url!r}, oauth_url={pixiv.url!r})
            store = TokenStore(Path({str(store.path("main").parent)!r}))
            async with open_http(None, 5.0, None) as http:
                session = AccountSession("main", "refresh-0", store, settings, http, SystemWall())
                await session.access_token()
                print("token used")

        trio.run(main)
    """)
    with trio.fail_after(30):
        done = await trio.run_process(
            [sys.executable, "-c", script],
            check=False,
            capture_stdout=True,
            env={"PIXIVFLOW_FAILPOINT": "pixiv.token_saved"},
        )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == -9
    assert done.stdout == b""
    assert store.load("main").refresh_token == "refresh-1"


def test_the_wall_of_the_host_is_a_wall():
    assert SystemWall().now_ms() > 0
