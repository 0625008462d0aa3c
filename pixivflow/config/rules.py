"""What the values of a file must keep to together: pure findings on decoded Structs."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Literal

import msgspec

from pixivflow.config import texts
from pixivflow.config.decode import Entry
from pixivflow.config.model import Route, ScheduleSection, TargetSection
from pixivflow.config.problems import Severity, nearest

MODE_KEYS: dict[str, frozenset[str]] = {
    "search": frozenset({"tags", "tags_match", "match", "sort"}),
    "ranking": frozenset({"ranking", "ranking_date"}),
    "artist": frozenset({"artist_id"}),
    "work": frozenset({"work"}),
}
"""The keys of a target that have an effect in one mode only."""

_REQUIRED = {"search": "tags", "artist": "artist_id", "work": "work"}
_EXAMPLES = {
    "tags": 'a list such as ["風景"]',
    "artist_id": "the number of an artist",
    "work": "the number of a work",
}


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong with the value of a key."""

    key: str
    message: str
    severity: Severity = "error"


class Names(msgspec.Struct, frozen=True):
    """What a target may refer to."""

    accounts: Collection[str]
    routes: Collection[str]


def target_findings(entry: Entry[TargetSection], names: Names) -> Iterator[Finding]:
    """Everything that is wrong with a target beyond its single values."""
    for rule in (_limit, _mode, _ranges, _effects):
        yield from rule(entry)
    yield from _references(entry, names)


def schedule_findings(
    entry: Entry[ScheduleSection], targets: Mapping[str, Entry[TargetSection]]
) -> Iterator[Finding]:
    """Everything that is wrong with a schedule beyond its single values."""
    if entry.knows("targets") and not entry.value.targets:
        yield Finding("targets", "found no target, expected at least one id of a target")
    for target_id in entry.value.targets:
        if target_id not in targets:
            yield Finding("targets", unknown_name("target", target_id, targets))
        elif entry.value.enabled and not targets[target_id].value.enabled:
            yield Finding("targets", f'the target "{target_id}" is not enabled and will not run', "warning")


def route_findings(entry: Entry[Route]) -> Iterator[Finding]:
    """Everything that is wrong with a route beyond its single values."""
    route = entry.value
    if entry.knows("retry_base", "retry_cap") and route.retry_cap_s < route.retry_base_s:
        yield Finding("retry_cap", "expected a duration not shorter than retry_base")


def unknown_name(what: Literal["target", "account", "route"], name: str, known: Collection[str]) -> str:
    """Return the message for a name that refers to nothing."""
    likely = nearest(name, known)
    if likely:
        return f'unknown {what} "{name}", did you mean "{likely}"?'
    return f'unknown {what} "{name}", ' + (
        f"expected {texts.one_of(sorted(known))}" if known else "there is none"
    )


def _limit(entry: Entry[TargetSection]) -> Iterator[Finding]:
    limit, mode = entry.value.limit, entry.value.mode
    if limit == 1 or not entry.knows("limit", "mode") or (limit is None and mode == "work"):
        return
    found = "no limit" if limit is None else str(limit)
    if mode == "work":
        yield Finding("limit", f"found {found}, expected limit = 1 or none: the target names one work")
        return
    yield Finding(
        "limit",
        f"found {found}, expected limit = 1; targets that take several works in one slot are not available in"
        " this release",
    )


def _mode(entry: Entry[TargetSection]) -> Iterator[Finding]:
    mode = entry.value.mode
    if not entry.knows("mode"):
        return
    required = _REQUIRED.get(mode)
    if required and entry.knows(required) and not getattr(entry.value, required):
        yield Finding(required, f'missing, expected {_EXAMPLES[required]} with mode = "{mode}"')
    for other, keys in MODE_KEYS.items():
        for key in sorted(keys & entry.table.given if other != mode else ()):
            yield Finding(key, f'has no effect with mode = "{mode}", only with mode = "{other}"')


def _ranges(entry: Entry[TargetSection]) -> Iterator[Finding]:
    target = entry.value
    for low, high in (("min_bookmarks", "max_bookmarks"), ("min_pages", "max_pages")):
        least, most = getattr(target, low), getattr(target, high)
        if least is not None and most is not None and least > most:
            yield Finding(high, f"found {most}, expected a number not below {low} = {least}")
    since, until = _day(target.since), _day(target.until)
    if since and until and since > until:
        yield Finding("until", f'found "{until}", expected a day not before since = "{since}"')


def _effects(entry: Entry[TargetSection]) -> Iterator[Finding]:
    target = entry.value
    if target.storage == "cache" and not target.routes and entry.knows("storage", "routes"):
        yield Finding("storage", 'found "cache" without a route, expected routes, or storage = "persistent"')
    if target.fields and not target.routes and entry.knows("routes") and "fields" in entry.table.given:
        yield Finding("fields", "has no effect: the target has no routes", "warning")
    if target.mode == "ranking" and "r18" in target.ranking:
        key = "r18g" if "r18g" in target.ranking else "r18"
        if getattr(target, key) == "exclude":
            text = f'the ranking "{target.ranking}" lists what {key} = "exclude" refuses: nothing will be selected'
            yield Finding("ranking", text, "warning")


def _references(entry: Entry[TargetSection], names: Names) -> Iterator[Finding]:
    account = entry.value.account
    if account is not None and account not in names.accounts:
        yield Finding("account", unknown_name("account", account, names.accounts))
    several = len(names.accounts) > 1 and "main" not in names.accounts
    if account is None and entry.knows("account") and several:
        yield Finding("account", f"missing, expected {texts.one_of(sorted(names.accounts))}")
    for route in entry.value.routes:
        if route not in names.routes:
            yield Finding("routes", unknown_name("route", route, names.routes))


def _day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
