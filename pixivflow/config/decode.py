"""From one table of the file to one Struct, telling everything that is wrong with it at once."""

import json
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
from msgspec.structs import FieldInfo

from pixivflow.config import kinds, texts
from pixivflow.config.availability import is_later_key, is_later_value
from pixivflow.config.document import Texts, Unusable
from pixivflow.config.model import Section
from pixivflow.config.problems import Keys, Report, nearest
from pixivflow.config.redaction import redact_url

S = TypeVar("S", bound=Section)
_LONGEST_SHOWN = 60


class Table(msgspec.Struct, frozen=True):
    """The usable values of one table, by key, and which keys were there at all."""

    at: Keys
    values: dict[str, Any]
    given: frozenset[str]
    bad: frozenset[str]
    """Keys whose value can't be used; that was reported already."""


class Entry(msgspec.Struct, Generic[S], frozen=True):
    """A Struct made from a table. Where ``bad`` names a required key, its value is a placeholder."""

    table: Table
    value: S
    bad: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether the value may leave this package."""
        required = {info.encode_name for info in msgspec.structs.fields(self.value) if info.required}
        return not required & self.bad

    def knows(self, *keys: str) -> bool:
        """Whether the values of these keys are what the file says."""
        return not self.bad.intersection(keys)


class Decoder:
    """Decodes tables, reporting to one report."""

    def __init__(self, report: Report, expander: Texts) -> None:
        self._report = report
        self._texts = expander

    def table(self, section: type[Section], raw: Mapping[str, Any], at: Keys) -> Table:
        """Read every key of a table on its own."""
        known = {info.encode_name: info for info in msgspec.structs.fields(section)}
        values: dict[str, Any] = {}
        bad: set[str] = set()
        for key, value in raw.items():
            name = self._field_of(key, raw, known, at)
            if name is None:
                continue
            try:
                values[name] = self._value(known[name], key, value, (*at, key))
            except Unusable:
                if not _is_secret(known[name]):
                    bad.add(name)
        return Table(at, values, frozenset(raw), frozenset(bad))

    def entry(self, section: type[S], table: Table, base: Table | None = None) -> Entry[S]:
        """Make the Struct; ``base`` gives values for keys that the table lacks. Reports missing keys."""
        merged = {**(base.values if base else {}), **table.values}
        bad = set(table.bad)
        if base:
            bad |= base.bad - set(table.values)
        arguments: dict[str, Any] = {}
        for info in msgspec.structs.fields(section):
            if info.encode_name in merged:
                arguments[info.name] = merged[info.encode_name]
            elif info.required:
                arguments[info.name] = kinds.placeholder(info.type)
                if info.encode_name not in bad:
                    bad.add(info.encode_name)
                    self._missing(info, table)
        return Entry(table, section(**arguments), frozenset(bad))

    def section(self, section: type[S], raw: Mapping[str, Any], at: Keys) -> Entry[S]:
        """Read a table and make its Struct."""
        return self.entry(section, self.table(section, raw, at))

    def mapping(self, raw: Mapping[str, Any], *at: str) -> Mapping[str, Any]:
        """Return the table of a name, empty when it is not there or no table."""
        value = raw.get(at[-1], {})
        if isinstance(value, dict):
            return value
        self._report.error(at, f"found {shown(value)}, expected a table: [{'.'.join(at)}]")
        return {}

    def listing(self, raw: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
        """Return the tables of a list, such as ``[[targets]]``."""
        value = raw.get(name, [])
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return value
        self._report.error((name,), f"found {shown(value)}, expected tables that each begin with [[{name}]]")
        return []

    def unknown(self, key: str, known: Mapping[str, Any], at: Keys) -> None:
        """Report a key that the table ``at`` does not have."""
        table = str(at[0]) if at else ""
        if is_later_key(table, key):
            self._report.error((*at, key), f'"{key}" is not available in this release')
            return
        likely = nearest(key, known)
        hint = f'did you mean "{likely}"?' if likely else f"known here: {', '.join(sorted(known))}"
        self._report.error((*at, key), f'unknown key "{key}", {hint}')

    def _field_of(
        self, key: str, raw: Mapping[str, Any], known: Mapping[str, FieldInfo], at: Keys
    ) -> str | None:
        """Return the field that a key of the file is about: of ``x_file`` it is ``x``."""
        if key in known:
            return key
        name = key.removesuffix("_file")
        if name == key or name not in known or not _is_secret(known[name]):
            self.unknown(key, known, at)
            return None
        if name in raw:
            self._report.error((*at, key), f'found both "{name}" and "{key}", expected one of them')
            return None
        return name

    def _value(self, info: FieldInfo, key: str, raw: Any, at: Keys) -> Any:
        """One value. Raises Unusable after reporting why."""
        if key != info.encode_name:
            return self._texts.read_file(raw, at)
        value = self._texts.expand(raw, at)
        complete = self._texts.is_complete(raw)
        if _is_secret(info) and isinstance(value, str) and (not complete or not value):
            raise Unusable
        if complete and is_later_value(str(at[0]), info.encode_name, value):
            choices = texts.one_of(kinds.choices_of(info.type))
            self._refuse(at, f'"{value}" is not available in this release, expected {choices}')
        try:
            return kinds.read(info.type, value)
        except ValueError as error:
            if not complete:
                raise Unusable from None
            self._refuse(at, f"found {_shown(info, raw)}, {error}{_suggestion(info, value)}")

    def _refuse(self, at: Keys, message: str) -> NoReturn:
        self._report.error(at, message)
        raise Unusable

    def _missing(self, info: FieldInfo, table: Table) -> None:
        key = info.encode_name
        self._report.error((*table.at, key), f'"{key}" is missing, expected {kinds.expectation(info.type)}')


def shown(value: Any) -> str:
    """Return a value of the file, for a message."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, datetime | date | time):
        return f"{value.isoformat()} without quotes"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _shown(info: FieldInfo, raw: Any) -> str:
    kind = kinds.kind_of(info.type)
    if kind and kind.secret:
        return f"a value of the kind {type(raw).__name__}" if not isinstance(raw, dict) else "a table"
    if kind and kind.address and isinstance(raw, str):
        return shown(redact_url(raw))
    return shown(raw)


def _suggestion(info: FieldInfo, value: Any) -> str:
    choices = kinds.choices_of(info.type)
    likely = nearest(value, choices) if isinstance(value, str) and choices else None
    return f', did you mean "{likely}"?' if likely else ""


def _is_secret(info: FieldInfo) -> bool:
    """Whether the field is a single secret, which may also come from a file."""
    kind = kinds.kind_of(info.type)
    return kind is not None and kind.secret and kind.check is texts.check_one_line
