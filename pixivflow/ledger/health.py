"""What must survive a restart about accounts and routes: logins refused, pauses, breakers, paces."""

import msgspec
from sqlite_utils import Database

from pixivflow.ledger.events import record_event


class AccountRow(msgspec.Struct, frozen=True):
    """An account's health; times in ms UTC."""

    name: str
    cooldown_until: int | None
    auth_expired_at: int | None
    auth_reason: str | None
    fingerprint: str | None


def read_accounts(db: Database) -> tuple[AccountRow, ...]:
    """Return the health of every account seen so far."""
    rows = db.execute(
        "SELECT name, cooldown_until, auth_expired_at, auth_reason, fingerprint FROM accounts ORDER BY name"
    )
    return tuple(AccountRow(*row) for row in rows.fetchall())


def account_refused(db: Database, name: str, reason: str, fingerprint: str | None, now: int) -> None:
    """Note that Pixiv refused the account's login: its cells wait until a new token appears."""
    db.execute(
        """INSERT INTO accounts (name, auth_expired_at, auth_reason, fingerprint) VALUES (?, ?, ?, ?)
           ON CONFLICT (name) DO UPDATE SET auth_expired_at = coalesce(auth_expired_at, excluded.auth_expired_at),
               auth_reason = excluded.auth_reason, fingerprint = excluded.fingerprint""",
        (name, now, reason, fingerprint),
    )
    record_event(db, now, "account_refused", f"account:{name}", reason)


def account_renewed(db: Database, name: str, now: int) -> bool:
    """Let a refused account's cells run again; false when it was not refused."""
    changed = db.execute(
        "UPDATE accounts SET auth_expired_at = NULL, auth_reason = NULL WHERE name = ? AND auth_expired_at IS NOT NULL",
        (name,),
    ).rowcount
    if changed:
        record_event(db, now, "account_renewed", f"account:{name}")
    return changed == 1


def cool_down(db: Database, name: str, until: int) -> None:
    """Keep the account's cells waiting until ``until``; a cooldown never shrinks."""
    db.execute(
        """INSERT INTO accounts (name, cooldown_until) VALUES (?, ?) ON CONFLICT (name)
           DO UPDATE SET cooldown_until = max(coalesce(cooldown_until, 0), excluded.cooldown_until)""",
        (name, until),
    )


class RouteRow(msgspec.Struct, frozen=True):
    """A route's health; ``breaker`` is opaque JSON, ``facts`` a fingerprint of its settings.

    ``reason`` says why it is paused, or, where it is not, what it waits for.
    """

    name: str
    paused_at: int | None = None
    reason: str | None = None
    breaker: str | None = None
    last_sent_at: int | None = None
    facts: str | None = None


def open_route(db: Database, name: str, facts: str, now: int) -> RouteRow:
    """Return a route's health; a pause made under other settings is lifted."""
    db.execute("INSERT INTO routes (name, facts) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", (name, facts))
    lifted = db.execute(
        """UPDATE routes SET facts = ?, paused_at = NULL, reason = NULL, breaker = NULL WHERE name = ? AND facts IS NOT ?""",
        (facts, name, facts),
    ).rowcount
    if lifted:
        record_event(db, now, "route_changed", f"route:{name}")
    row = db.execute(
        "SELECT name, paused_at, reason, breaker, last_sent_at, facts FROM routes WHERE name = ?", (name,)
    ).fetchone()
    return RouteRow(*row)


def read_routes(db: Database) -> tuple[RouteRow, ...]:
    """Return the health of every route seen so far."""
    rows = db.execute(
        "SELECT name, paused_at, reason, breaker, last_sent_at, facts FROM routes ORDER BY name"
    )
    return tuple(RouteRow(*row) for row in rows.fetchall())


def read_route(db: Database, name: str) -> RouteRow | None:
    """Return the health of one route; None when it was never opened."""
    row = db.execute(
        "SELECT name, paused_at, reason, breaker, last_sent_at, facts FROM routes WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else RouteRow(*row)


def note_waiting(db: Database, name: str, reason: str | None) -> None:
    """Keep why a route that is not paused waits, for people; None when it goes on."""
    db.execute("UPDATE routes SET reason = ? WHERE name = ? AND paused_at IS NULL", (reason, name))


def save_route(db: Database, name: str, *, breaker: str, last_sent_at: int | None) -> None:
    """Keep a route's breaker and the time of its last send."""
    db.execute(
        "UPDATE routes SET breaker = ?, last_sent_at = coalesce(?, last_sent_at) WHERE name = ?",
        (breaker, last_sent_at, name),
    )


def pause_route(db: Database, name: str, reason: str, now: int) -> None:
    """Stop sending on a route until somebody acts, its settings change, or a probe succeeds."""
    changed = db.execute(
        "UPDATE routes SET paused_at = ?, reason = ? WHERE name = ? AND paused_at IS NULL",
        (now, reason, name),
    ).rowcount
    if changed:
        record_event(db, now, "route_paused", f"route:{name}", reason)


def resume_route(db: Database, name: str, now: int) -> None:
    """Send on a paused route again."""
    changed = db.execute(
        "UPDATE routes SET paused_at = NULL, reason = NULL WHERE name = ? AND paused_at IS NOT NULL", (name,)
    ).rowcount
    if changed:
        record_event(db, now, "route_resumed", f"route:{name}")
