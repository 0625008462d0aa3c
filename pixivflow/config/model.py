"""The configuration, resolved: what every other part reads. Names with ``_s`` are seconds."""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import field

from pixivflow.config.kinds import (
    BaseUrl,
    Count,
    Cron,
    Day,
    Fields,
    FilePath,
    Headers,
    Id,
    Ids,
    Language,
    PathTemplate,
    Positive,
    Proxy,
    Ranking,
    RankingDay,
    Seconds,
    Secret,
    Size,
    Text,
    Texts,
    Timeout,
    UpTo64,
    UpTo1000,
    Url,
    Zone,
    kind_of,
)
from pixivflow.config.problems import ConfigProblem, ConfigRefused
from pixivflow.config.redaction import MASK, redact_url

__all__ = ["BaseConfig", "Config", "ConfigProblem", "ConfigRefused", "LoginConfig", "Section"]

DEFAULT_PATH = "{author_id}-{author_name}/{id}_{title}_p{page}"


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file; a field's encoded name is its key there. Secrets are not in its repr."""

    def __repr__(self) -> str:
        shown = (f"{info.name}={self._shown(info)}" for info in msgspec.structs.fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"

    def _shown(self, info: msgspec.structs.FieldInfo) -> str:
        kind, value = kind_of(info.type), getattr(self, info.name)
        if kind and value and kind.secret:
            return MASK
        return repr(redact_url(value) if kind and kind.address and value else value)


class PixivSection(Section, frozen=True):
    """How Pixiv is reached."""

    api_url: BaseUrl = "https://app-api.pixiv.net"
    oauth_url: BaseUrl = "https://oauth.secure.pixiv.net"
    image_url: BaseUrl | None = None
    """A mirror that takes the place of the image host; None: images come from where Pixiv says."""
    proxy: Proxy | None = None
    image_proxy: Proxy | None = None
    """Resolved: the same as ``proxy`` where the file has no key; an empty text there means none."""
    timeout_s: Timeout = field(default=30.0, name="timeout")
    pace_s: Seconds = field(default=1.0, name="pace")
    language: Language = "en"


class AccountSection(Section, frozen=True):
    """One login. ``refresh_token`` is None where the login is kept by `pixivflow login` alone."""

    refresh_token: Secret | None = None
    capacity: UpTo64 = 1


class StorageSection(Section, frozen=True):
    """Where things are kept; both folders are absolute once resolved."""

    state_dir: FilePath = Path()
    download_dir: FilePath = Path()
    path: PathTemplate = DEFAULT_PATH
    page_concurrency: UpTo64 = 6
    min_free: Size = 500 * 2**20
    names: Literal["portable", "linux"] = "portable"

    @property
    def ledger_file(self) -> Path:
        """Where the ledger is."""
        return self.state_dir / "ledger.db"

    @property
    def control_socket(self) -> Path:
        """Where the daemon listens."""
        return self.state_dir / "control.sock"


class SchedulerSection(Section, frozen=True):
    """What holds for every schedule."""

    timezone: Zone = "UTC"
    grace_s: Seconds = field(default=5400.0, name="grace")
    lead_s: Seconds = field(default=900.0, name="lead")
    retry_for_s: Timeout = field(default=21_600.0, name="retry_for")


class ScheduleSection(Section, frozen=True):
    """When which targets are due. ``timezone`` is that of ``[scheduler]`` where the file has no key."""

    id: Id
    cron: Cron
    targets: Ids
    timezone: Zone = "UTC"
    enabled: bool = True
    timeout_s: Timeout = field(default=1800.0, name="timeout")
    catch_up: Literal["latest", "all", "none"] = "latest"
    catch_up_window_s: Seconds = field(default=86_400.0, name="catch_up_window")
    overlap: Literal["queue", "skip"] = "queue"


class TargetSection(Section, frozen=True):
    """What to collect and what to do with it, the keys of ``[defaults]`` merged in."""

    id: Id
    mode: Literal["search", "ranking", "artist", "work"]
    kind: Literal["illustration"] = "illustration"
    enabled: bool = True
    account: Text | None = None
    limit: Positive | None = None
    scan_limit: UpTo1000 = 5
    tags: Texts = ()
    tags_match: Literal["all", "any"] = "all"
    match: Literal["partial", "exact", "title_caption"] = "partial"
    exclude_tags: Texts = ()
    sort: Literal["newest", "oldest", "popular"] = "newest"
    ranking: Ranking = "day"
    ranking_date: RankingDay | None = None
    artist_id: Positive | None = None
    work: Positive | None = None
    min_bookmarks: Count | None = None
    max_bookmarks: Count | None = None
    min_views: Count | None = None
    ai: Literal["any", "exclude", "only"] = "any"
    r18: Literal["exclude", "include", "only"] = "exclude"
    r18g: Literal["exclude", "include", "only"] = "exclude"
    min_pages: Positive | None = None
    max_pages: Positive | None = None
    since: Day | None = None
    until: Day | None = None
    storage: Literal["persistent", "cache"] = "persistent"
    path: PathTemplate | None = None
    """None: the template of ``[storage]``."""
    sidecar: bool = True
    routes: Ids = ()
    fields: Fields = {}


class MultipartRoute(Section, frozen=True):
    """A receiver that takes one multipart form a work. ``url`` and ``headers`` may hold secrets."""

    url: Url
    type: Literal["multipart"] = "multipart"
    headers: Headers = {}
    file_field: Text = "files"
    fields: Fields = {}
    array_format: Literal["comma", "repeat", "json"] = "comma"
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    readiness_url: Url | None = None
    proxy: Proxy | None = None
    min_interval_s: Seconds = field(default=0.0, name="min_interval")
    max_attempts: UpTo1000 = 10
    retry_base_s: Timeout = field(default=30.0, name="retry_base")
    retry_cap_s: Timeout = field(default=21_600.0, name="retry_cap")
    timeout_s: Timeout = field(default=300.0, name="timeout")
    expire_after_s: Timeout = field(default=604_800.0, name="expire_after")


class FolderRoute(Section, frozen=True):
    """A folder that each work is copied into; ``path`` is absolute once resolved."""

    path: FilePath
    type: Literal["folder"] = "folder"
    min_interval_s: Seconds = field(default=0.0, name="min_interval")
    max_attempts: UpTo1000 = 10
    retry_base_s: Timeout = field(default=30.0, name="retry_base")
    retry_cap_s: Timeout = field(default=21_600.0, name="retry_cap")
    timeout_s: Timeout = field(default=300.0, name="timeout")
    expire_after_s: Timeout = field(default=604_800.0, name="expire_after")


Route = MultipartRoute | FolderRoute


class ControlSection(Section, frozen=True):
    """Who may use the control socket beside the owner and root."""

    group: Text | None = None


class LoggingSection(Section, frozen=True):
    """How the log looks."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class RetentionSection(Section, frozen=True):
    """How long what is finished is kept."""

    payloads_s: Seconds = field(default=604_800.0, name="payloads")
    events_s: Seconds = field(default=7_776_000.0, name="events")
    failed_cache_s: Seconds = field(default=604_800.0, name="failed_cache")


class Config(msgspec.Struct, frozen=True):
    """A whole valid configuration; immutable, and replaced as one."""

    path: Path
    storage: StorageSection
    pixiv: PixivSection = PixivSection()
    accounts: dict[str, AccountSection] = {}
    scheduler: SchedulerSection = SchedulerSection()
    schedules: tuple[ScheduleSection, ...] = ()
    targets: tuple[TargetSection, ...] = ()
    routes: dict[str, Route] = {}
    control: ControlSection = ControlSection()
    logging: LoggingSection = LoggingSection()
    retention: RetentionSection = RetentionSection()

    def target(self, target_id: str) -> TargetSection:
        """Return the target of this id. Raises KeyError when there is none."""
        return {target.id: target for target in self.targets}[target_id]

    def schedule(self, schedule_id: str) -> ScheduleSection:
        """Return the schedule of this id. Raises KeyError when there is none."""
        return {schedule.id: schedule for schedule in self.schedules}[schedule_id]


class BaseConfig(msgspec.Struct, frozen=True):
    """What a command needs that only talks to the daemon."""

    path: Path
    storage: StorageSection
    control: ControlSection = ControlSection()


class LoginConfig(msgspec.Struct, frozen=True):
    """What a login needs. ``notes`` tell what could not be read of the accounts, such as an unset variable."""

    path: Path
    storage: StorageSection
    pixiv: PixivSection
    accounts: dict[str, AccountSection]
    notes: tuple[ConfigProblem, ...] = ()
