"""Puts the decoded tables of a file together: defaults, names, places, and the rules between them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from pixivflow.config import rules
from pixivflow.config.availability import is_later_value
from pixivflow.config.decode import Decoder, Entry, Table, shown
from pixivflow.config.document import Document, Texts
from pixivflow.config.locate import default_state_dir
from pixivflow.config.model import (
    AccountSection,
    BaseConfig,
    Config,
    ControlSection,
    FolderRoute,
    LoggingSection,
    MultipartRoute,
    PixivSection,
    RetentionSection,
    Route,
    SchedulerSection,
    ScheduleSection,
    Section,
    StorageSection,
    TargetSection,
)
from pixivflow.config.problems import Keys, Report, nearest
from pixivflow.config.texts import check_id, one_of

_TABLES = (
    "pixiv",
    "accounts",
    "storage",
    "defaults",
    "scheduler",
    "schedules",
    "targets",
    "routes",
    "control",
)
TOP_LEVEL = dict.fromkeys((*_TABLES, "logging", "retention"))
ROUTE_TYPES: dict[str, type[MultipartRoute] | type[FolderRoute]] = {
    "multipart": MultipartRoute,
    "folder": FolderRoute,
}
_ADDED_UP = ("exclude_tags",)
S = TypeVar("S", bound=Section)


def assemble(document: Document, env: Mapping[str, str], texts: Texts, report: Report) -> tuple[Config, bool]:
    """Return the configuration of a parsed file, and whether it is whole or has placeholders in it."""
    return _Assembly(document, env, texts, report).config()


def base_of(document: Document, env: Mapping[str, str], texts: Texts, report: Report) -> BaseConfig:
    """Return what `[storage]` and `[control]` say, without a look at the rest."""
    assembly = _Assembly(document, env, texts, report)
    return BaseConfig(document.file, assembly.storage(), assembly.section(ControlSection, "control"))


def pixiv_of(document: Document, env: Mapping[str, str], texts: Texts, report: Report) -> PixivSection:
    """Return what `[pixiv]` says, without a look at the rest."""
    return _Assembly(document, env, texts, report).pixiv()


def accounts_of(
    document: Document, env: Mapping[str, str], texts: Texts, report: Report
) -> dict[str, AccountSection]:
    """Return the accounts, without a look at the rest."""
    return _Assembly(document, env, texts, report).accounts()


class _Assembly:
    """One file on its way to a Config."""

    def __init__(self, document: Document, env: Mapping[str, str], texts: Texts, report: Report) -> None:
        self._file = document.file
        self._raw = document.tables
        self._env = env
        self._texts = texts
        self._report = report
        self._decoder = Decoder(report, texts)

    def config(self) -> tuple[Config, bool]:
        for key in self._raw.keys() - TOP_LEVEL.keys():
            self._decoder.unknown(key, TOP_LEVEL, ())
        pixiv, scheduler = self.pixiv(), self.section(SchedulerSection, "scheduler")
        accounts, routes = self.accounts(), self.routes()
        targets = self.targets(
            rules.Names(accounts, self._decoder.mapping(self._raw, "routes").keys()), accounts
        )
        schedules = self.schedules(targets)
        entries: tuple[Entry[Any], ...] = (*routes.values(), *targets, *schedules)
        config = Config(
            path=self._file,
            storage=self.storage(),
            pixiv=pixiv,
            accounts=accounts,
            scheduler=scheduler,
            schedules=tuple(self.zoned(entry, scheduler) for entry in schedules),
            targets=tuple(entry.value for entry in targets),
            routes={name: entry.value for name, entry in routes.items()},
            control=self.section(ControlSection, "control"),
            logging=self.section(LoggingSection, "logging"),
            retention=self.section(RetentionSection, "retention"),
        )
        return config, all(entry.whole for entry in entries)

    def section(self, section: type[S], name: str) -> S:
        return self._decoder.section(section, self._decoder.mapping(self._raw, name), (name,)).value

    def storage(self) -> StorageSection:
        raw = self._decoder.mapping(self._raw, "storage")
        entry = self._decoder.section(StorageSection, raw, ("storage",))
        found = entry.table.values
        state = self._texts.place(found.get("state_dir", default_state_dir(self._file, self._env)))
        download = self._texts.place(found.get("download_dir", state / "downloads"))
        if entry.knows("state_dir", "download_dir") and state == download:
            self._report.error(("storage", "download_dir"), "expected another folder than state_dir")
        return replace(entry.value, state_dir=state, download_dir=download)

    def pixiv(self) -> PixivSection:
        found = self.section(PixivSection, "pixiv")
        image_proxy = found.proxy if found.image_proxy is None else found.image_proxy
        return replace(found, proxy=found.proxy or None, image_proxy=image_proxy or None)

    def accounts(self) -> dict[str, AccountSection]:
        named = self.named("accounts")
        sections = {
            name: self._decoder.section(AccountSection, raw, ("accounts", name)).value for name, raw in named
        }
        return sections or {"main": AccountSection()}

    def routes(self) -> dict[str, Entry[Route]]:
        entries = {name: entry for name, raw in self.named("routes") if (entry := self.route(name, raw))}
        folders: dict[Any, str] = {}
        for name, entry in entries.items():
            at = ("routes", name)
            self.findings(at, rules.route_findings(entry))
            if isinstance(entry.value, FolderRoute) and entry.knows("path"):
                other = folders.setdefault(entry.value.path, name)
                if other != name:
                    self._report.warning((*at, "path"), f'the route "{other}" writes into the same folder')
        return entries

    def route(self, name: str, raw: Mapping[str, Any]) -> Entry[Route] | None:
        at: Keys = ("routes", name)
        kind = raw.get("type")
        section = ROUTE_TYPES.get(kind) if isinstance(kind, str) else None
        if section is None:
            self._report.error((*at, "type"), _route_type_message(kind))
            return None
        if section is MultipartRoute:
            entry = self._decoder.section(MultipartRoute, raw, at)
            value: Route = replace(entry.value, proxy=entry.value.proxy or None)
            return Entry(entry.table, value, entry.bad)
        folder = self._decoder.section(FolderRoute, raw, at)
        return Entry(
            folder.table, replace(folder.value, path=self._texts.place(folder.value.path)), folder.bad
        )

    def targets(
        self, names: rules.Names, accounts: Mapping[str, AccountSection]
    ) -> list[Entry[TargetSection]]:
        defaults = self.defaults()
        entries = [
            self._decoder.entry(TargetSection, self.target_table(raw, index, defaults), defaults)
            for index, raw in enumerate(self._decoder.listing(self._raw, "targets"))
        ]
        self.distinct("targets", entries)
        for entry in entries:
            self.findings(entry.table.at, rules.target_findings(entry, names))
        if not entries:
            self._report.warning((), "there is no [[targets]]: nothing will be collected")
        own = "main" if "main" in accounts else next(iter(accounts))
        return [
            Entry(entry.table, replace(entry.value, account=entry.value.account or own), entry.bad)
            for entry in entries
        ]

    def defaults(self) -> Table:
        raw = dict(self._decoder.mapping(self._raw, "defaults"))
        if raw.pop("id", None) is not None:
            self._report.error(("defaults", "id"), "an id belongs to one target, expected it in [[targets]]")
        return self._decoder.table(TargetSection, raw, ("defaults",))

    def target_table(self, raw: Mapping[str, Any], index: int, defaults: Table) -> Table:
        at: Keys = ("targets", index)
        self.call_by_id(at, raw)
        table = self._decoder.table(TargetSection, raw, at)
        added = {
            key: tuple(dict.fromkeys((*defaults.values[key], *table.values[key])))
            for key in _ADDED_UP
            if key in defaults.values and key in table.values
        }
        return Table(at, {**table.values, **added}, table.given, table.bad)

    def schedules(self, targets: Iterable[Entry[TargetSection]]) -> list[Entry[ScheduleSection]]:
        entries = []
        for index, raw in enumerate(self._decoder.listing(self._raw, "schedules")):
            self.call_by_id(("schedules", index), raw)
            entries.append(self._decoder.section(ScheduleSection, raw, ("schedules", index)))
        self.distinct("schedules", entries)
        by_id = {entry.value.id: entry for entry in targets if entry.knows("id")}
        for entry in entries:
            self.findings(entry.table.at, rules.schedule_findings(entry, by_id))
        return entries

    def zoned(self, entry: Entry[ScheduleSection], scheduler: SchedulerSection) -> ScheduleSection:
        return replace(entry.value, timezone=entry.table.values.get("timezone", scheduler.timezone))

    def named(self, table: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Return the tables of a table, such as ``[routes.NAME]``, whose names are good."""
        entries = self._decoder.mapping(self._raw, table)
        for name in entries:
            try:
                check_id(name)
            except ValueError as error:
                self._report.error((table, name), f"found {shown(name)} as a name, {error}")
            raw = self._decoder.mapping(entries, table, name)
            if raw is entries[name]:
                yield name, raw

    def distinct(self, table: str, entries: Iterable[Entry[ScheduleSection] | Entry[TargetSection]]) -> None:
        """Refuse an id that an entry before has."""
        first: dict[str, Keys] = {}
        for entry in entries:
            at, entry_id = entry.table.at, entry.value.id
            if entry.knows("id") and first.setdefault(entry_id, at) != at:
                line = self._report.line((*first[entry_id], "id"))
                message = f'the id "{entry_id}" is there twice in [[{table}]], first on line {line}'
                self._report.error((*at, "id"), message)

    def call_by_id(self, at: Keys, raw: Mapping[str, Any]) -> None:
        """Let the report speak of the entry by its id, if that is one."""
        entry_id = raw.get("id")
        if isinstance(entry_id, str) and entry_id and "$" not in entry_id:
            self._report.name(at, entry_id)

    def findings(self, at: Keys, findings: Iterable[rules.Finding]) -> None:
        for finding in findings:
            record = self._report.error if finding.severity == "error" else self._report.warning
            record((*at, finding.key), finding.message)


def _route_type_message(kind: object) -> str:
    if kind is None:
        return f'"type" is missing, expected {one_of(ROUTE_TYPES)}'
    if is_later_value("routes", "type", kind):
        return f'"{kind}" is not available in this release, expected {one_of(ROUTE_TYPES)}'
    likely = nearest(kind, ROUTE_TYPES) if isinstance(kind, str) else None
    hint = f', did you mean "{likely}"?' if likely else ""
    return f"found {shown(kind)}, expected {one_of(ROUTE_TYPES)}{hint}"
