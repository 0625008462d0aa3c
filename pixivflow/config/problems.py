"""What is wrong with a configuration file, and where."""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

Keys = tuple[str | int, ...]
"""The way to a value in the file: ``("targets", 2, "tags")``."""

Severity = Literal["error", "warning"]


class ConfigProblem(msgspec.Struct, frozen=True):
    """One thing to be said about a configuration file."""

    file: Path
    key_path: str
    """``targets.landscape.tags``, or ``targets[2].tags`` where there is no usable id; empty for the file."""
    message: str
    severity: Severity = "error"
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        key = f" {self.key_path}:" if self.key_path else ""
        mark = " warning:" if self.severity == "warning" else ""
        return f"{place}:{mark}{key} {self.message}"


class ConfigRefused(Exception):
    """The file can't be used; its text lists every problem, one a line."""

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Report:
    """Collects the problems of one file.

    ``strict_variables`` makes an unset variable an error; without it, it is a warning.
    """

    def __init__(self, file: Path, *, strict_variables: bool) -> None:
        self.file = file
        self._strict_variables = strict_variables
        self._problems: list[ConfigProblem] = []
        self._lines: Mapping[Keys, int] = {}
        self._names: dict[Keys, str] = {}

    def locate(self, lines: Mapping[Keys, int]) -> None:
        """Give the line on which each key stands."""
        self._lines = lines

    def name(self, at: Keys, name: str) -> None:
        """Speak of the entry ``at`` of a list by its id from now on."""
        self._names[at] = name

    def error(self, at: Keys, message: str, *, line: int | None = None) -> None:
        """Record an error of the value at ``at``."""
        self._add(at, message, "error", line)

    def warning(self, at: Keys, message: str) -> None:
        """Record a warning about the value at ``at``."""
        self._add(at, message, "warning", None)

    def unset(self, at: Keys, variable: str) -> None:
        """Record that the environment lacks a variable which the value at ``at`` names."""
        message = f"the environment variable {variable} is not set"
        self._add(at, message, "error" if self._strict_variables else "warning", None)

    def mentions(self, at: Keys) -> bool:
        """Whether something was said about this very value."""
        return any(problem.key_path == self._path(at) for problem in self._problems)

    def line(self, at: Keys) -> int | None:
        """Return the line of the value at ``at``, or of the nearest table around it that was found."""
        for length in range(len(at), 0, -1):
            if at[:length] in self._lines:
                return self._lines[at[:length]]
        return None

    @property
    def problems(self) -> tuple[ConfigProblem, ...]:
        """All problems, in the order of the file."""
        return tuple(sorted(self._problems, key=lambda problem: problem.line or 0))

    @property
    def errors(self) -> tuple[ConfigProblem, ...]:
        """The problems that make the file unusable."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    def _add(self, at: Keys, message: str, severity: Severity, line: int | None) -> None:
        problem = ConfigProblem(self.file, self._path(at), message, severity, line or self.line(at))
        if problem not in self._problems:
            self._problems.append(problem)

    def _path(self, at: Keys) -> str:
        text = ""
        for index, key in enumerate(at):
            name = self._names.get(at[: index + 1])
            if isinstance(key, int) and name is None:
                text += f"[{key}]"
            else:
                text += f".{name or key}" if text else str(key)
        return text


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was most likely meant, if one is near enough."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None
