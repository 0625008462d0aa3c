"""The file as it is written: its TOML, the variables in its texts and the files that it names."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from pixivflow.config.locate import user_name
from pixivflow.config.positions import find_lines
from pixivflow.config.problems import Keys, Report

_VARIABLE = re.compile(r"\$(\$?)\{([^}]*)\}?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_LARGEST_SECRET = 65_536


class Unusable(Exception):
    """A value can't be used; what there is to say about it has been reported."""


class Document(msgspec.Struct, frozen=True):
    """A parsed file."""

    file: Path
    tables: dict[str, Any]
    world_readable: bool


def read_document(file: Path, report: Report) -> Document | None:
    """Read and parse the file; None when that is impossible and the report says why."""
    try:
        mode = file.stat().st_mode
        data = file.read_bytes()
    except OSError as error:
        who = f" by the user {user_name()}" if isinstance(error, PermissionError) else ""
        report.error((), f"cannot be read{who}: {error.strerror}")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        report.error(
            (), f"found a byte that is not UTF-8, expected a text file in UTF-8: {error.reason}", line=line
        )
        return None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _syntax_error(str(error), text, report)
        return None
    report.locate(find_lines(text))
    return Document(file, tables, bool(mode & stat.S_IROTH))


def _syntax_error(message: str, text: str, report: Report) -> None:
    position = _POSITION.search(message)
    line = int(position[1]) if position and position[1] else text.count("\n") + 1
    column = f" at column {position[2]}" if position and position[2] else " at the end of the file"
    said = _POSITION.sub("", message)
    if said == "Cannot overwrite a value":
        said = "the same key is there twice in one table"
    report.error((), f"not valid TOML{column}: {said}", line=line)


def named_variables(file: Path) -> frozenset[str]:
    """Return the names of the variables that a readable file mentions anywhere, also in its comments."""
    text = file.read_text(encoding="utf-8-sig")
    return frozenset(name for _, name in _VARIABLE.findall(text))


class Texts:
    """Puts variables into texts and reads the files that ``*_file`` keys name."""

    def __init__(self, base: Path, env: Mapping[str, str], report: Report) -> None:
        self._base = base
        self._env = env
        self._report = report

    def expand(self, value: Any, at: Keys) -> Any:
        """Return the value with ``${NAME}`` replaced in every text of it; an unset one is reported and stays."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda match: self._variable(match, at), value)
        if isinstance(value, list):
            return [self.expand(item, (*at, index)) for index, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self.expand(item, (*at, key)) for key, item in value.items()}
        return value

    def is_complete(self, value: Any) -> bool:
        """Whether every variable that the value names is set."""
        if isinstance(value, str):
            return all(escaped or name in self._env for escaped, name in _VARIABLE.findall(value))
        if isinstance(value, list):
            return all(map(self.is_complete, value))
        return not isinstance(value, dict) or all(map(self.is_complete, value.values()))

    def read_file(self, value: Any, at: Keys) -> str:
        """Return the text of the file that a ``*_file`` key names. Raises Unusable."""
        if not isinstance(value, str) or not value:
            self._refuse(at, "expected the path of a file in quotes")
        written = re.sub(r"^\$CREDENTIALS_DIRECTORY\b", "${CREDENTIALS_DIRECTORY}", value)
        path = self.expand(written, at)
        if not self.is_complete(written):
            raise Unusable
        place = self.place(Path(path))
        try:
            with place.open("rb") as file:
                text = file.read(_LARGEST_SECRET + 1).decode().strip()
        except OSError as error:
            self._refuse(at, f"{place} cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            self._refuse(at, f"{place} is not a text in UTF-8")
        if not text or len(text) > _LARGEST_SECRET:
            self._refuse(at, f"{place} is {'too large' if text else 'empty'}, expected one line")
        return text

    def place(self, path: Path) -> Path:
        """Return the path made absolute: ``~`` is the home folder, a relative one begins beside the file."""
        if path.parts[:1] == ("~",):
            path = Path(self._env.get("HOME") or Path.home(), *path.parts[1:])
        return Path(os.path.normpath(self._base / path))

    def _variable(self, match: re.Match[str], at: Keys) -> str:
        escaped, name = match.groups()
        if escaped:
            return match[0][1:]
        if not _NAME.fullmatch(name) or not match[0].endswith("}"):
            self._report.error(
                at, f'found {match[0]!r}, expected a variable such as "${{NAME}}" ("$${{" for a plain "${{")'
            )
        elif name not in self._env:
            self._report.unset(at, name)
        elif not self._env[name]:
            self._report.warning(at, f"the environment variable {name} is empty")
        return self._env.get(name, match[0])

    def _refuse(self, at: Keys, message: str) -> NoReturn:
        self._report.error(at, message)
        raise Unusable
