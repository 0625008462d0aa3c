"""The pure tables of the actors: what an error, a verdict, a configuration means."""

import random

import pytest

from actors.assembly import lanes, pixiv_settings, retention, roots_of, route_settings, route_terms
from actors.failures import COOLDOWN_S, failure_of
from actors.settlement import RetryTerms, settlement_of
from pixivflow.clock import SystemWall
from pixivflow.delivery.settings import FolderSettings, MultipartSettings
from pixivflow.delivery.templates import TemplateRefused as FieldTemplateRefused
from pixivflow.download.errors import (
    DiskFull,
    DownloadError,
    FileGone,
    ImageRefused,
    IntegrityFailed,
    PathRefused,
    StorageFailed,
    UnsupportedWork,
)
from pixivflow.ledger.files import PathTaken
from pixivflow.ledger.leases import Lease, Queue
from pixivflow.ledger.outbox import ClaimedRow, Postponed, Settled
from pixivflow.pixiv.errors import (
    AccessDenied,
    AuthFailed,
    CredentialsDamaged,
    NetworkFailed,
    OwnerGone,
    PaginationError,
    RateLimited,
    RequestRefused,
    ServerFailed,
    WorkDeleted,
    WorkRestricted,
)
from protocol.reasons import Reason
from protocol.states import IntentStatus
from protocol.verdicts import Verdict, VerdictKind

# (error, reason, tried again, spends an attempt)
FAILURES = [
    (NetworkFailed("x"), Reason.NETWORK_ERROR, True, True),
    (ServerFailed("x"), Reason.REMOTE_HTTP_ERROR, True, True),
    (RateLimited("x"), Reason.RATE_LIMITED, True, False),
    (AuthFailed("x"), Reason.AUTH_FAILED, True, False),
    (CredentialsDamaged("x"), Reason.AUTH_FAILED, True, False),
    (AccessDenied("x"), Reason.AUTH_FAILED, True, True),
    (RequestRefused("x"), Reason.METADATA_FAILED, True, True),
    (PaginationError("x"), Reason.METADATA_FAILED, True, True),
    (WorkDeleted("x"), Reason.LOCKED_WORK_UNAVAILABLE, False, True),
    (WorkRestricted("x"), Reason.LOCKED_WORK_UNAVAILABLE, False, True),
    (OwnerGone("x"), Reason.LOCKED_WORK_UNAVAILABLE, False, True),
    (UnsupportedWork("x"), Reason.LOCKED_WORK_UNAVAILABLE, False, True),
    (PathTaken("x"), Reason.CONFIGURATION_ERROR, False, True),
    (PathRefused("x"), Reason.CONFIGURATION_ERROR, False, True),
    (FieldTemplateRefused("x"), Reason.CONFIGURATION_ERROR, False, True),
    (DiskFull("x"), Reason.DISK_FULL, True, True),
    (StorageFailed("x"), Reason.DOWNLOAD_FAILED, True, True),
    (IntegrityFailed("x"), Reason.INTEGRITY_FAILED, True, True),
    (FileGone("x"), Reason.DOWNLOAD_FAILED, True, True),
    (ImageRefused("x"), Reason.DOWNLOAD_FAILED, True, True),
    (DownloadError("x"), Reason.DOWNLOAD_FAILED, True, True),
    (KeyError("x"), Reason.INTERNAL_ERROR, True, True),
]


@pytest.mark.parametrize(("error", "reason", "retryable", "spends"), FAILURES)
def test_each_error_has_one_meaning(error, reason, retryable, spends):
    failure = failure_of(error)
    assert (failure.reason, failure.retryable, failure.spends) == (reason, retryable, spends)


def test_an_error_without_words_is_named_by_its_type():
    assert failure_of(NetworkFailed()).text == "NetworkFailed"


@pytest.mark.parametrize(("asked", "kept"), [(None, COOLDOWN_S), (5.0, COOLDOWN_S), (900.0, 900.0)])
def test_a_rate_limit_cools_down_at_least_a_minute(asked, kept):
    assert failure_of(RateLimited("x", retry_after_s=asked)).cooldown_s == kept


@pytest.mark.parametrize(("error", "logged_out"), [(AuthFailed("x"), True), (AccessDenied("x"), False)])
def test_only_a_refused_login_asks_for_a_new_one(error, logged_out):
    assert failure_of(error).logged_out is logged_out


TERMS = RetryTerms(30.0, 3600.0)


def settled(verdict, *, attempts=0, most=10, breaker_open=False):
    row = ClaimedRow(Lease(Queue.OUTBOX, 1, 1, "me", 10**15), 1, "r", "{}", attempts, most, 10**15, None, "t")
    return settlement_of(row, verdict, TERMS, 1_000_000, random.Random(1), breaker_open=breaker_open)


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        (VerdictKind.ACCEPTED, IntentStatus.DELIVERED, None),
        (VerdictKind.REPLAYED, IntentStatus.DELIVERED, None),
        (VerdictKind.DUPLICATE, IntentStatus.DUPLICATE, None),
        (VerdictKind.REJECTED, IntentStatus.FAILED, Reason.DELIVERY_REJECTED),
    ],
)
def test_a_definite_verdict_ends_the_row(kind, status, reason):
    found = settled(Verdict(kind))
    assert isinstance(found, Settled)
    assert (found.status, found.reason, found.spends) == (status, reason, status is IntentStatus.FAILED)


@pytest.mark.parametrize("kind", [VerdictKind.RETRY, VerdictKind.UNCERTAIN])
@pytest.mark.parametrize("spends", [True, False])
@pytest.mark.parametrize("breaker_open", [True, False])
def test_only_an_answer_about_the_row_spends_an_attempt_and_none_while_the_breaker_is_open(
    kind, spends, breaker_open
):
    found = settled(Verdict(kind, spends_attempt=spends), attempts=9, breaker_open=breaker_open)
    assert isinstance(found, Settled) is (spends and not breaker_open)
    if isinstance(found, Postponed):
        assert not found.spends


def test_a_pause_that_was_asked_for_is_never_undercut():
    found = settled(Verdict(VerdictKind.RETRY, retry_after_s=7200.0))
    assert found == Postponed(1_000_000 + 7_200_000, False, None, "")


@pytest.mark.parametrize("attempts", [0, 3, 50])
def test_a_delay_grows_up_to_its_cap_and_never_below_its_base(attempts):
    found = settled(Verdict(VerdictKind.RETRY, spends_attempt=True), attempts=attempts, most=100)
    waits = (found.due_at - 1_000_000) / 1000
    assert 30.0 <= waits <= 30.0 + min(3600.0, 30.0 * 2.0**attempts)


CONFIG = """
[storage]
state_dir = "state"
download_dir = "downloads"
[pixiv]
pace = "2s"
timeout = "9s"
[accounts.main]
refresh_token = "t"
[[targets]]
id = "land"
mode = "search"
tags = ["x"]
limit = 1
routes = ["channel", "inbox"]
[routes.channel]
type = "multipart"
url = "https://host.example/{path}"
headers = {{ Authorization = "Bearer s3cret" }}
min_interval = "5s"
timeout = "70s"
[routes.inbox]
type = "folder"
path = "inbox"
[retention]
payloads = "1d"
events = "2d"
failed_cache = "3d"
"""


@pytest.fixture
def config(benches):
    return benches.config(CONFIG.format(path="a"))


def test_settings_are_handed_on(config, tmp_path):
    assert (pixiv_settings(config).pace_s, pixiv_settings(config).timeout_s) == (2.0, 9.0)
    channel = route_settings("channel", config.routes["channel"])
    assert isinstance(channel, MultipartSettings)
    assert (channel.name, channel.url, channel.timeout_s) == ("channel", "https://host.example/a", 70.0)
    assert route_settings("inbox", config.routes["inbox"]) == FolderSettings(
        name="inbox", path=tmp_path / "inbox"
    )
    kept = retention(config)
    assert (kept.payloads_s, kept.events_s, kept.failed_cache_s) == (86_400, 172_800, 259_200)
    assert roots_of(config) == {"download": tmp_path / "downloads", "state": tmp_path / "state"}
    assert set(route_terms(config)) == {"channel", "inbox"}


def test_the_facts_of_a_route_change_with_its_settings_and_hold_no_secret(config, benches):
    facts = {name: terms.facts for name, (terms, _) in lanes(config, SystemWall()).items()}
    again = {name: terms.facts for name, (terms, _) in lanes(config, SystemWall()).items()}
    edited = benches.config(CONFIG.format(path="b"))
    other = {name: terms.facts for name, (terms, _) in lanes(edited, SystemWall()).items()}
    assert facts == again
    assert facts["channel"] != other["channel"]
    assert facts["inbox"] == other["inbox"]
    assert "s3cret" not in repr(lanes(config, SystemWall())["channel"][0])


def test_what_a_route_waits_for_names_its_place_and_no_secret(benches):
    text = CONFIG.format(path="a").replace(
        'timeout = "70s"', 'timeout = "70s"\nreadiness_url = "https://u:s3cret@host.example/up?token=s3cret"'
    )
    told = {name: terms.unready for name, (terms, _) in lanes(benches.config(text), SystemWall()).items()}
    assert told["channel"].startswith("https://host.example/up (readiness_url)")
    assert "s3cret" not in told["channel"]
    assert "inbox can't be written" in told["inbox"]
