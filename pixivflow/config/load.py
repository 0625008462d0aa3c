"""From a file to a `Config`, or to the list of everything that is wrong with it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pixivflow.config.assemble import accounts_of, assemble, base_of, pixiv_of
from pixivflow.config.document import Document, Texts, read_document
from pixivflow.config.model import BaseConfig, Config, LoginConfig
from pixivflow.config.problems import ConfigProblem, ConfigRefused, Keys, Report
from pixivflow.config.secrecy import literal_secrets, secret_fields

Check = Callable[[str], object]


class Checks(msgspec.Struct, frozen=True):
    """What other parts know about texts that are theirs; each raises ValueError for a bad one."""

    path: Check | None = None
    """Of a path template."""
    field: Check | None = None
    """Of the template of a form field."""
    cron: Check | None = None
    """Of the cron expression of a schedule that says nothing impossible by itself."""


NO_CHECKS = Checks()


def load_config(path: Path, env: Mapping[str, str], *, checks: Checks = NO_CHECKS) -> Config:
    """Return the configuration of a file. Raises ConfigRefused with every error of it."""
    config, report = _examine(path, env, checks, strict_variables=True)
    if config is None or report.errors:
        raise ConfigRefused(report.errors)
    return config


def check_config(
    path: Path, env: Mapping[str, str], *, checks: Checks = NO_CHECKS
) -> tuple[Config | None, tuple[ConfigProblem, ...]]:
    """Return the configuration, if it can be used, and every error and warning.

    An unset variable is a warning here. The configuration is None also when a value that it can't be without
    depends on one.
    """
    config, report = _examine(path, env, checks, strict_variables=False)
    return (None if report.errors else config), report.problems


def load_base(path: Path, env: Mapping[str, str]) -> BaseConfig:
    """Return the tables ``[storage]`` and ``[control]`` alone, whatever else is wrong with the file or not set.

    Raises ConfigRefused when the file or one of the two can't be used.
    """
    path = path.absolute()
    report = Report(path, strict_variables=True)
    document = read_document(path, report)
    base = base_of(document, env, Texts(path.parent, env, report), report) if document else None
    if base is None or report.errors:
        raise ConfigRefused(report.errors)
    return base


def load_login(path: Path, env: Mapping[str, str]) -> LoginConfig:
    """Return what a login needs, whatever else is wrong with the file or not set.

    Tokens that can't be read here (a variable of the daemon's, say) are notes. Raises ConfigRefused.
    """
    path = path.absolute()
    report, lenient = Report(path, strict_variables=True), Report(path, strict_variables=False)
    document = read_document(path, report)
    if document is None:
        raise ConfigRefused(report.errors)
    strict_texts, lenient_texts = Texts(path.parent, env, report), Texts(path.parent, env, lenient)
    base = base_of(document, env, strict_texts, report)
    pixiv = pixiv_of(document, env, strict_texts, report)
    accounts = accounts_of(document, env, lenient_texts, lenient)
    if report.errors or lenient.errors:
        raise ConfigRefused((*report.errors, *lenient.errors))
    return LoginConfig(path, base.storage, pixiv, accounts, lenient.problems)


def _examine(
    path: Path, env: Mapping[str, str], checks: Checks, *, strict_variables: bool
) -> tuple[Config | None, Report]:
    path = path.absolute()
    report = Report(path, strict_variables=strict_variables)
    document = read_document(path, report)
    if document is None:
        return None, report
    config, whole = assemble(document, env, Texts(path.parent, env, report), report)
    _ask_others(config, checks, report)
    _warn_of_secrets(document, report)
    return config if whole else None, report


def _ask_others(config: Config, checks: Checks, report: Report) -> None:
    """Have other parts check their texts."""
    _ask(checks.path, config.storage.path, ("storage", "path"), report)
    for index, target in enumerate(config.targets):
        if target.path is not None:
            _ask(checks.path, target.path, ("targets", index, "path"), report)
        for name, text in target.fields.items():
            _ask(checks.field, text, ("targets", index, "fields", name), report)
    for index, schedule in enumerate(config.schedules):
        _ask(checks.cron, schedule.cron, ("schedules", index, "cron"), report)
    for route_name, route in config.routes.items():
        for name, text in getattr(route, "fields", {}).items():
            _ask(checks.field, text, ("routes", route_name, "fields", name), report)


def _ask(check: Check | None, text: str, at: Keys, report: Report) -> None:
    if check is None or not text or report.mentions(at):
        return
    try:
        check(text)
    except ValueError as error:
        report.error(at, str(error))


def _warn_of_secrets(document: Document, report: Report) -> None:
    """Warn of secrets where others can read them: in an open file, or in what the ledger keeps."""
    tables: dict[str, Any] = document.tables
    for at in literal_secrets(tables) if document.world_readable else ():
        text = "a secret in a file that everybody on this host may read: use ${NAME} or chmod o-r"
        report.warning(at, text)
    for at in secret_fields(tables):
        report.warning(at, "form fields are kept in the ledger as they are: put secrets into headers")
