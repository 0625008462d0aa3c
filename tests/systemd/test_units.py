"""The units as systemd reads them."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

SYSTEMD = Path(__file__).parents[2] / "systemd"
UNITS = ("pixivflow.service", "pixivflow@.service")
BINARY = "/opt/pixivflow/.venv/bin/pixivflow"


def service(name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keys of units keep their case
    parser.read(SYSTEMD / name)
    return dict(parser["Service"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_has_nothing_to_say_about_a_unit(name: str, tmp_path: Path) -> None:
    unit = tmp_path / name.replace("@", "@main")
    unit.write_text((SYSTEMD / name).read_text().replace(BINARY, "/bin/true"))
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_starts_the_daemon_where_the_readme_puts_it(name: str) -> None:
    config = "/etc/pixivflow/%i.toml" if "@" in name else "/etc/pixivflow/pixivflow.toml"
    assert service(name)["ExecStart"] == f"{BINARY} run -c {config}"


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_does_not_restart_what_a_restart_cannot_mend(name: str) -> None:
    found = service(name)
    assert (found["Type"], found["NotifyAccess"], found["Restart"]) == ("notify", "main", "on-failure")
    assert found["RestartPreventExitStatus"].split() == ["65", "75"]


WATCHED = {"Type": "notify", "WatchdogSec": "60", "TimeoutStopSec": "15", "KillMode": "mixed"}
LOCKED_UP = {
    "ProtectSystem": "strict",
    "ProtectHome": "true",
    "PrivateTmp": "true",
    "PrivateDevices": "true",
    "NoNewPrivileges": "true",
    "CapabilityBoundingSet": "",
    "MemoryDenyWriteExecute": "true",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "SystemCallFilter": "@system-service",
}


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_watched_and_has_time_to_stop(name: str) -> None:
    assert service(name).items() >= WATCHED.items()


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_may_do_nothing_that_the_daemon_need_not(name: str) -> None:
    found = service(name)
    assert found.items() >= LOCKED_UP.items()
    assert found["User"] == "pixivflow"


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_keeps_its_state_where_systemd_puts_it(name: str) -> None:
    folder = "pixivflow/%i" if "@" in name else "pixivflow"
    found = service(name)
    assert (found["StateDirectory"], found["StateDirectoryMode"]) == (folder, "0750")


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_shows_how_to_hand_over_the_refresh_token(name: str) -> None:
    source = "%i.refresh_token" if "@" in name else "refresh_token"
    lines = (SYSTEMD / name).read_text().splitlines()
    assert f"#LoadCredential=refresh_token:/etc/pixivflow/{source}" in lines


def test_instances_keep_apart_and_differ_in_nothing_else() -> None:
    single, instance = (service(name) for name in UNITS)
    assert {key for key in single if single[key] != instance[key]} == {"ExecStart", "StateDirectory"}
    assert instance["StateDirectory"] == "pixivflow/%i"
