import json
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pixivflow.cli.config_commands import config_group, config_path
from pixivflow.config.sample import example_for
from pixivflow.pixiv.credentials import StoredToken, TokenStore

TARGET = '[[targets]]\nid = "t"\nmode = "work"\nwork = 1\n'
ROUTE = '[routes.r]\ntype = "multipart"\n'


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch, tmp_path):
    for name in (
        "PIXIVFLOW_CONFIG",
        "STATE_DIRECTORY",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "CREDENTIALS_DIRECTORY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def _run(*args: str, config: Path | None = None) -> Result:
    return CliRunner().invoke(config_group, args, obj={"config": config})


def _write(text: str) -> Path:
    path = Path("pixivflow.toml").absolute()
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_the_example_passes_the_strict_check_in_an_empty_environment():
    assert _run("init").exit_code == 0
    result = _run("check", "--strict")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "ok (2 targets, 2 schedules, 1 route, 1 account)" in result.stdout


def test_the_commented_lines_of_the_example_pass_too(monkeypatch):
    monkeypatch.setenv("CHANNEL_TOKEN", "x")
    _run("init")
    lines = Path("pixivflow.toml").read_text().split("\n")
    chosen = [line for line in lines if "_file = " not in line and "PIXIV_REFRESH" not in line]
    is_setting = [line.startswith("# ") and (" = " in line or line.startswith("# [")) for line in chosen]
    _write("\n".join(line[2:] if setting else line for line, setting in zip(chosen, is_setting, strict=True)))
    result = _run("check")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "3 targets, 2 schedules, 2 routes" in result.stdout


def test_init_writes_the_file_it_is_told_to():
    assert _run("init", "other.toml").exit_code == 0
    assert Path("other.toml").exists()


def test_the_example_for_the_system_keeps_works_where_the_daemon_may_write():
    _write(example_for(Path("/etc/pixivflow/second.toml")))
    assert _run("check", "--strict").exit_code == 0
    shown = tomllib.loads(_run("show").stdout)
    assert shown["storage"]["download_dir"] == "/var/lib/pixivflow/second/downloads"
    assert shown["routes"]["inbox"]["path"] == "/var/lib/pixivflow/second/inbox"


def test_init_never_overwrites_a_file():
    path = _write("mine")
    result = _run("init")
    assert result.exit_code == 1
    assert "is there already" in result.stderr
    assert path.read_text() == "mine"


def test_init_says_why_a_file_can_not_be_written():
    result = _run("init", "no/such/folder.toml")
    assert result.exit_code == 1
    assert "no/such/folder.toml cannot be written: No such file or directory" in result.stderr


def test_check_prints_every_error_and_ends_with_65():
    path = _write("[pixiv]\na = 1\nb = 2\n" + TARGET)
    result = _run("check")
    assert result.exit_code == 65
    assert f"{path}:2: pixiv.a:" in result.stderr
    assert f"{path}:3: pixiv.b:" in result.stderr
    assert "refused, 2 errors, 0 warnings" in result.stderr


def test_check_takes_warnings_for_errors_only_when_strict():
    _write(TARGET + '[accounts.main]\nrefresh_token = "${NOT_SET}"\n')
    assert _run("check").exit_code == 0
    assert "NOT_SET is not set" in _run("check").stderr
    assert _run("check", "--strict").exit_code == 65


def test_check_says_which_account_needs_a_login_and_is_content():
    _write(TARGET + "[accounts.alice]")
    result = _run("check", "--strict")
    assert result.exit_code == 0
    assert "note: account 'alice' has no login yet; run: pixivflow login alice" in result.stdout


def test_check_finds_the_logins_that_are_stored(tmp_path):
    _write(
        '[storage]\nstate_dir = "s"\n' + TARGET + '[accounts.alice]\n[accounts.main]\nrefresh_token = "x"\n'
    )
    TokenStore(tmp_path / "s" / "tokens").save("alice", StoredToken("secret", 1))
    assert "note:" not in _run("check").stdout


def test_check_names_a_stored_login_that_can_not_be_read(tmp_path):
    _write('[storage]\nstate_dir = "s"\n' + TARGET + "[accounts.alice]\n")
    stored = tmp_path / "s" / "tokens" / "alice.json"
    stored.parent.mkdir(parents=True)
    stored.write_text("{")
    result = _run("check")
    assert f"note: {stored}: can't be read: it is damaged; run: pixivflow login alice" in result.stdout


@pytest.mark.parametrize("line", ['refresh_token = "${NOT_SET}"', 'refresh_token_file = "${NOT_SET}/token"'])
def test_check_says_one_thing_about_a_token_whose_variable_is_not_set(line):
    _write(f"{TARGET}[accounts.main]\n{line}\n")
    result = _run("check")
    assert result.exit_code == 0
    assert "NOT_SET is not set" in result.stderr
    assert "note:" not in result.stdout


def test_check_knows_the_templates_of_files_and_fields():
    _write(
        '[storage]\npath = "{id}{nonsense}"\n'
        + TARGET
        + ROUTE
        + 'url = "http://h"\nfields = { a = "{{nonsense}}" }'
    )
    result = _run("check")
    assert result.exit_code == 65
    assert "storage.path:" in result.stderr
    assert "routes.r.fields.a:" in result.stderr


def test_check_knows_what_the_timetable_refuses():
    _write(TARGET + '[[schedules]]\nid = "s"\ncron = "5-5 8 * * *"\ntargets = ["t"]\n')
    result = _run("check")
    assert result.exit_code == 65
    assert "schedules.s.cron:" in result.stderr


def test_check_uses_the_file_that_was_named(tmp_path):
    _write("nonsense")
    other = tmp_path / "other.toml"
    other.write_text(TARGET)
    result = _run("check", config=other)
    assert result.exit_code == 0
    assert str(other) in result.stdout


def test_without_a_file_the_places_are_listed_and_it_ends_with_65(tmp_path):
    result = _run("check")
    assert result.exit_code == 65
    assert str(tmp_path / "pixivflow.toml") in result.stderr
    assert "pixivflow config init" in result.stderr


def test_show_prints_valid_toml_that_means_the_same():
    _run("init")
    first = _run("show")
    assert tomllib.loads(first.stdout)["targets"][0]["tags"] == ["風景"]
    _write(first.stdout)
    assert _run("show").stdout == first.stdout


def test_show_as_json_has_the_same_tables():
    _run("init")
    assert json.loads(_run("show", "--json").stdout) == tomllib.loads(_run("show").stdout)


SECRETS = {"TOKEN": "hunter22-token", "HOOK": "https://hook.example/hunter22-hook", "PIN": "hunter22-pin"}


@pytest.mark.parametrize("option", [(), ("--json",)])
def test_no_secret_is_shown(monkeypatch, option):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    _write(
        '[pixiv]\nproxy = "http://me:hunter22@proxy.example:1"\n'
        '[accounts.main]\nrefresh_token = "${TOKEN}"\n[accounts.b]\nrefresh_token = "hunter22"\n'
        + TARGET
        + ROUTE
        + 'url = "${HOOK}"\nreadiness_url = "http://me:hunter22@h/x?api_key=hunter22"\n'
        + 'headers = { Authorization = "Bearer ${TOKEN}", X = "hunter22" }\n'
        + 'fields = { pin = "pin ${PIN}", password = "hunter22", title = "{{title}}" }\n'
    )
    result = _run("show", *option)
    assert result.exit_code == 0
    assert "hunter22" not in result.output
    assert "***" in result.output
    assert "${HOOK}" in result.output
    assert "{{title}}" in result.output


def test_show_works_without_the_variables_of_secrets():
    _write(TARGET + ROUTE + 'url = "http://h"\nheaders = { Authorization = "Bearer ${NOT_SET}" }\n')
    result = _run("show")
    assert result.exit_code == 0
    assert '"Authorization" = "***"' in result.stdout


def test_show_refuses_a_bad_file_with_every_problem():
    _write("[pixiv]\na = 1\n")
    result = _run("show")
    assert result.exit_code == 65
    assert "pixiv.a" in result.stderr


def test_show_says_where_things_are(tmp_path):
    _write('[storage]\nstate_dir = "s"\ndownload_dir = "d"\n' + TARGET)
    assert json.loads(_run("show", "--paths", "--json").stdout) == {
        "config": str(tmp_path / "pixivflow.toml"),
        "state_dir": str(tmp_path / "s"),
        "download_dir": str(tmp_path / "d"),
        "ledger": str(tmp_path / "s/ledger.db"),
        "control_socket": str(tmp_path / "s/control.sock"),
    }
    assert f"state_dir      {tmp_path / 's'}" in _run("show", "--paths").stdout


def test_config_path_falls_back_when_no_option_was_stored(tmp_path):
    path = _write(TARGET)
    assert config_path(click.Context(click.Command("x"))) == path
