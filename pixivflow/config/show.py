"""The resolved configuration as text, without its secrets."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pixivflow.config import kinds
from pixivflow.config.model import BaseConfig, Config, Section, TargetSection
from pixivflow.config.redaction import MASK, is_secret_name, redact_url
from pixivflow.config.rules import MODE_KEYS

_LEAST_REPLACED = 4
"""A shorter value of a variable is looked for as a whole text only."""


def shown_config(config: Config, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return every table as the file would have it, secrets as ``***``; made of JSON's types.

    Texts that came from one of the variables are shown as ``${NAME}`` again, since any may be a secret.
    """
    show = _Show(variables)
    shown: dict[str, Any] = {}
    for info in msgspec.structs.fields(config):
        value = getattr(config, info.name)
        if isinstance(value, Section):
            shown[info.name] = show.section(value)
        elif isinstance(value, Mapping):
            shown[info.name] = {name: show.section(section) for name, section in value.items()}
        elif isinstance(value, tuple):
            shown[info.name] = [show.section(section) for section in value]
    return {name: table for name, table in shown.items() if table}


def shown_paths(config: Config | BaseConfig) -> dict[str, str]:
    """Where things are."""
    storage = config.storage
    return {
        "config": str(config.path),
        "state_dir": str(storage.state_dir),
        "download_dir": str(storage.download_dir),
        "ledger": str(storage.ledger_file),
        "control_socket": str(storage.control_socket),
    }


def as_toml(shown: Mapping[str, Any]) -> str:
    """Return what `shown_config` gave, in the notation of the file."""
    return "\n\n".join("\n".join(lines) for lines in _tables(shown)) + "\n"


def _without_effect(section: Section) -> frozenset[str]:
    """Return the keys of a target that belong to other modes; the file may not have them either."""
    if not isinstance(section, TargetSection):
        return frozenset()
    return frozenset().union(*(keys for mode, keys in MODE_KEYS.items() if mode != section.mode))


class _Show:
    """Turns sections into what may be seen of them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = sorted(variables.items(), key=lambda item: len(item[1]), reverse=True)

    def section(self, section: Section) -> dict[str, Any]:
        """Return the keys of a table that have a value."""
        values = {
            info.encode_name: self._value(kinds.kind_of(info.type), getattr(section, info.name))
            for info in msgspec.structs.fields(section)
        }
        without_effect = _without_effect(section)
        return {
            key: value for key, value in values.items() if value is not None and key not in without_effect
        }

    def _value(self, kind: kinds.Kind | None, value: Any) -> Any:
        if kind and value is not None:
            if kind.secret:
                return dict.fromkeys(value, MASK) if isinstance(value, dict) else MASK
            if kind.show:
                return kind.show(value)
        if isinstance(value, dict):
            return {name: self._field(name, text) for name, text in value.items()}
        if isinstance(value, tuple):
            return [self._text(item) for item in value]
        if not isinstance(value, str):
            return value
        text = self._text(value)
        return redact_url(text) if kind and kind.address else text

    def _field(self, name: str, text: str) -> str:
        return MASK if is_secret_name(name) and "{{" not in text else self._text(text)

    def _text(self, text: str) -> str:
        for name, value in self._variables:
            if value == text or len(value) >= _LEAST_REPLACED:
                text = text.replace(value, f"${{{name}}}")
        return text


def _tables(shown: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, table in shown.items():
        if isinstance(table, list):
            yield from (_table(f"[[{name}]]", entry) for entry in table)
        elif table and all(isinstance(entry, Mapping) for entry in table.values()):
            yield from (_table(f"[{name}.{entry}]", values) for entry, values in table.items())
        elif table:
            yield _table(f"[{name}]", table)


def _table(header: str, values: Mapping[str, Any]) -> list[str]:
    return [header, *(f"{key} = {_literal(value)}" for key, value in values.items())]


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = ", ".join(
            f"{json.dumps(key, ensure_ascii=False)} = {_literal(item)}" for key, item in value.items()
        )
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, Path):
        return json.dumps(str(value), ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)
