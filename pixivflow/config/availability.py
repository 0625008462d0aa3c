"""Words of the configuration's format that this release does not know yet."""

KEYS: dict[str, frozenset[str]] = {
    "": frozenset({"http", "notifications", "debug"}),
    "accounts": frozenset({"budget_per_day"}),
    "scheduler": frozenset({"queue_timeout", "stall_timeout"}),
    "schedules": frozenset({"kind", "clock"}),
    "targets": frozenset(
        {
            *("artist_ids", "artist_list", "series_id", "user_id", "restrict", "topic", "date"),
            *("look_back_days", "backfill", "ai_evidence", "min_width", "min_height", "orientation"),
            *("artists", "exclude_artists", "languages", "min_length", "max_length", "pages"),
            *("first_pages", "ugoira", "novel", "revisions", "no_content"),
        }
    ),
    "routes": frozenset(
        {
            *("dedup", "concurrency", "on_uncertain", "notification_url", "capabilities"),
            *("preview_field", "ack", "enabled"),
        }
    ),
    "retention": frozenset({"cache_age", "cache_size", "jobs"}),
}
"""By table (empty: the file itself), keys that are refused with a word of their own."""

VALUES: dict[tuple[str, str], frozenset[str]] = {
    ("targets", "kind"): frozenset({"novel"}),
    ("targets", "mode"): frozenset({"series", "bookmarks", "following", "related", "topic"}),
    ("targets", "sort"): frozenset({"random"}),
    ("routes", "type"): frozenset({"telegram", "webhook", "apprise"}),
}
"""By table and key, choices that are refused with a word of their own."""


def is_later_key(table: str, key: str) -> bool:
    """Whether a later release will know this key of the table."""
    return key in KEYS.get(_family(table), frozenset())


def is_later_value(table: str, key: str, value: object) -> bool:
    """Whether a later release will know this choice."""
    return isinstance(value, str) and value in VALUES.get((_family(table), key), frozenset())


def _family(table: str) -> str:
    return "targets" if table == "defaults" else table
