"""Whatever a file holds, it gives a configuration or a list of problems."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pixivflow.config import ConfigRefused, cell_spec, load_config
from pixivflow.config.assemble import ROUTE_TYPES, TOP_LEVEL, assemble
from pixivflow.config.document import Document, Texts
from pixivflow.config.model import (
    AccountSection,
    Config,
    PixivSection,
    SchedulerSection,
    ScheduleSection,
    StorageSection,
    TargetSection,
)
from pixivflow.config.problems import Report
from pixivflow.config.sample import example
from pixivflow.config.show import as_toml, shown_config

ENV = {"HOME": "/home/somebody", "SET": "x"}
FILE = Path("/srv/pixivflow.toml")
SECTIONS = (AccountSection, PixivSection, ScheduleSection, SchedulerSection, StorageSection, TargetSection)
WORDS = sorted(
    {
        info.encode_name
        for section in (*SECTIONS, *ROUTE_TYPES.values())
        for info in msgspec.structs.fields(section)
    }
    | set(TOP_LEVEL)
    | {"refresh_token_file", "http", "nonsense"}
)
GOOD = (
    "search",
    "work",
    "multipart",
    "folder",
    "cache",
    "1h",
    "1MiB",
    "http://h",
    "0 8 * * *",
    "UTC",
    "${SET}",
    "${NOT}",
    "t",
)
scalars = st.one_of(
    st.sampled_from(GOOD),
    st.text(max_size=8),
    st.integers(-2, 70),
    st.booleans(),
    st.floats(),
    st.dates(),
    st.times(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=20,
)
tables = st.dictionaries(st.sampled_from(WORDS), values, max_size=8)
files = st.fixed_dictionaries(
    {},
    optional={
        name: tables
        | st.lists(tables, max_size=3)
        | st.dictionaries(st.text(max_size=3), tables, max_size=2)
        | values
        for name in TOP_LEVEL
    },
)


def _assembled(raw: dict[str, object]) -> tuple[Config, bool, Report]:
    report = Report(FILE, strict_variables=True)
    config, whole = assemble(
        Document(FILE, raw, world_readable=False), ENV, Texts(FILE.parent, ENV, report), report
    )
    return config, whole, report


@given(files)
def test_any_tables_are_understood_or_refused(raw):
    config, whole, report = _assembled(raw)
    assert whole or report.errors
    if report.errors:
        assert str(ConfigRefused(report.errors))
    else:
        assert as_toml(shown_config(config, ENV))
        assert [cell_spec(config, target.id).target_id for target in config.targets] == [
            t.id for t in config.targets
        ]


@pytest.fixture(scope="module")
def changed_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changed") / "pixivflow.toml"


@given(st.data())
def test_an_example_with_changed_lines_is_understood_or_refused_with_places(changed_file, data):
    lines = example().split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        lines[index] = data.draw(st.sampled_from(["", lines[index][2:], lines[index - 1], lines[index][:-3]]))
    changed_file.write_text("\n".join(lines))
    try:
        load_config(changed_file, ENV)
    except ConfigRefused as refused:
        assert all(problem.line for problem in refused.problems)  # noqa: PT017 - most changes are refused, not all
