"""The manual keeps to the code: its configurations pass, its links lead somewhere, nothing is left out."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from pixivflow.cli.config_commands import CHECKS
from pixivflow.config import check_config
from pixivflow.config.availability import KEYS
from pixivflow.config.model import Config, FolderRoute, MultipartRoute, Section
from pixivflow.delivery.templates import FIELDS as FORM_FIELDS
from pixivflow.download.templates import FIELDS as PATH_FIELDS
from pixivflow.selection.report import SkipCode
from protocol.reasons import Reason

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = (*sorted(DOCS.glob("*.md")), ROOT / "README.md")
MARK = "# pixivflow.toml"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def _configurations() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for language, text in _FENCE.findall(page.read_text()):
            if language == "toml" and text.startswith(MARK):
                yield page.name, text


def _links(page: Path) -> Iterator[str]:
    prose = _FENCE.sub("", page.read_text())
    return (link for link in _LINK.findall(prose) if not re.match(r"[a-z]+:", link))


def _anchors(page: Path) -> set[str]:
    """Return what a link may name on a page, as web hosts derive it from headings."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _tables() -> Iterator[tuple[str, type[Section]]]:
    for info in msgspec.structs.fields(Config):
        found = re.findall(r"(\w+Section)", str(info.type))
        if found:
            yield info.encode_name, _section(found[0])
    yield "routes", MultipartRoute
    yield "routes", FolderRoute


def _section(name: str) -> type[Section]:
    return next(kind for kind in Section.__subclasses__() if kind.__name__ == name)


def _part(heading: str) -> str:
    """Return the text of configuration.md under a heading of the second level."""
    parts = re.split(r"^## ", (DOCS / "configuration.md").read_text(), flags=re.MULTILINE)
    return next(part for part in parts if part.startswith(heading))


def _words(text: str) -> set[str]:
    """Return the words of all code spans."""
    return {word for span in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", span)}


def test_the_manual_has_a_whole_configuration() -> None:
    assert any(page == "configuration.md" for page, _ in _configurations())


@pytest.mark.parametrize(
    ("page", "text"), tuple(_configurations()), ids=lambda value: value.partition("\n")[0]
)
def test_a_whole_configuration_in_the_manual_is_accepted(page: str, text: str, tmp_path: Path) -> None:
    secrets = tmp_path / "credentials"
    secrets.mkdir()
    for name in re.findall(r"\$\{CREDENTIALS_DIRECTORY\}/([\w.-]+)", text):
        (secrets / name).write_text("token\n")
    env: Mapping[str, str] = {
        **dict.fromkeys(re.findall(r"(?<!\$)\$\{(\w+)\}", text), "value"),
        "CREDENTIALS_DIRECTORY": str(secrets),
        "HOME": str(tmp_path),
    }
    file = tmp_path / "pixivflow.toml"
    file.write_text(text)
    file.chmod(0o600)

    config, problems = check_config(file, env, checks=CHECKS)

    assert [str(problem) for problem in problems] == []
    assert config is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file_and_a_heading_of_it(page: Path) -> None:
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target), f"{page.name}: {link}"


@pytest.mark.parametrize(
    ("table", "section"), tuple(_tables()), ids=lambda value: getattr(value, "__name__", value)
)
def test_every_key_of_the_configuration_is_described_under_its_table(
    table: str, section: type[Section]
) -> None:
    heading = {"accounts": "`[accounts.NAME]`", "routes": "`[routes.NAME]`"}.get(table)
    listed = table in {"schedules", "targets"}
    part = _part(heading or (f"`[[{table}]]`" if listed else f"`[{table}]`"))

    rows = "\n".join(line.split("|")[1] for line in part.splitlines() if line.startswith("|"))
    missing = [
        info.encode_name for info in msgspec.structs.fields(section) if info.encode_name not in _words(rows)
    ]

    assert missing == []


def test_every_key_that_is_refused_in_this_release_is_named() -> None:
    named = _words(_part("What this release does not accept"))

    assert sorted(set().union(*KEYS.values()) - named) == []


def test_every_field_of_path_templates_is_described() -> None:
    assert sorted(set(PATH_FIELDS) - _words(_part("Path templates"))) == []


def test_every_name_of_delivery_templates_is_described() -> None:
    assert sorted(set(FORM_FIELDS) - _words(_part("Delivery templates"))) == []


@pytest.mark.parametrize("code", [*Reason, *SkipCode])
def test_every_code_is_explained(code: str) -> None:
    assert f"`{code}`" in (DOCS / "selection.md").read_text()
