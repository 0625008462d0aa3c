from pixivflow.ledger.health import (
    account_refused,
    account_renewed,
    cool_down,
    open_route,
    pause_route,
    read_accounts,
    read_routes,
    resume_route,
    save_route,
)


def test_a_refused_login_is_remembered_from_its_first_refusal(book):
    book.do(account_refused, "main", "revoked", "f1", book.now)
    book.do(account_refused, "main", "still revoked", "f2", book.now + 5)
    [account] = book.do(read_accounts)
    assert (account.auth_expired_at, account.auth_reason, account.fingerprint) == (
        book.now,
        "still revoked",
        "f2",
    )


def test_only_a_refused_account_is_renewed(book):
    assert not book.do(account_renewed, "main", book.now)
    book.do(account_refused, "main", "revoked", None, book.now)
    assert book.do(account_renewed, "main", book.now)
    assert not book.do(account_renewed, "main", book.now)
    assert book.events("account_renewed") == ["account:main"]


def test_a_cooldown_never_shrinks(book):
    for until in (10, 30, 20):
        book.do(cool_down, "main", until)
    assert book.do(read_accounts)[0].cooldown_until == 30


def test_a_cooldown_and_a_refusal_do_not_touch_each_other(book):
    book.do(cool_down, "main", 30)
    book.do(account_refused, "main", "revoked", None, 5)
    book.do(account_renewed, "main", 6)
    assert book.do(read_accounts)[0].cooldown_until == 30


def test_a_routes_pause_and_breaker_outlive_a_restart_with_the_same_settings(book):
    book.do(open_route, "r", "facts", book.now)
    book.do(save_route, "r", breaker="{}", last_sent_at=7)
    book.do(pause_route, "r", "HTTP 401", book.now)
    row = book.do(open_route, "r", "facts", book.now + 5)
    assert (row.paused_at, row.reason, row.breaker, row.last_sent_at) == (book.now, "HTTP 401", "{}", 7)


def test_a_pause_made_under_other_settings_is_lifted(book):
    book.do(open_route, "r", "facts", book.now)
    book.do(save_route, "r", breaker="{}", last_sent_at=7)
    book.do(pause_route, "r", "HTTP 401", book.now)
    row = book.do(open_route, "r", "other facts", book.now)
    assert (row.paused_at, row.reason, row.breaker, row.last_sent_at) == (None, None, None, 7)
    assert book.events("route_changed") == ["route:r"]


def test_a_pause_keeps_its_first_cause_and_ends_once(book):
    book.do(open_route, "r", "facts", book.now)
    for reason in ("HTTP 401", "HTTP 403"):
        book.do(pause_route, "r", reason, book.now)
    assert book.do(read_routes)[0].reason == "HTTP 401"
    for _ in range(2):
        book.do(resume_route, "r", book.now)
    assert book.do(read_routes)[0].paused_at is None
    assert book.events("route_paused") == book.events("route_resumed") == ["route:r"]


def test_a_send_without_a_time_keeps_the_last_one(book):
    book.do(open_route, "r", "facts", book.now)
    book.do(save_route, "r", breaker="{}", last_sent_at=7)
    book.do(save_route, "r", breaker="[]", last_sent_at=None)
    [row] = book.do(read_routes)
    assert (row.breaker, row.last_sent_at) == ("[]", 7)
