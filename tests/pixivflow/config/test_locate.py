from pathlib import Path

import pytest

from pixivflow.config.locate import (
    ConfigNotFound,
    ConfigUnreadable,
    default_state_dir,
    locate_config,
    user_name,
)


def _touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_file_of_the_option_comes_before_everything(tmp_path):
    named, other = _touch(tmp_path / "a.toml"), _touch(tmp_path / "b.toml")
    assert locate_config(named, {"PIXIVFLOW_CONFIG": str(other)}, tmp_path) == named


def test_a_relative_option_begins_in_the_working_directory(tmp_path):
    assert locate_config(Path("a.toml"), {}, _touch(tmp_path / "a.toml").parent) == tmp_path / "a.toml"


def test_the_variable_comes_before_the_working_directory(tmp_path):
    _touch(tmp_path / "pixivflow.toml")
    other = _touch(tmp_path / "b.toml")
    assert locate_config(None, {"PIXIVFLOW_CONFIG": str(other)}, tmp_path) == other


def test_the_working_directory_comes_before_the_home_folder(tmp_path):
    _touch(tmp_path / "home/.config/pixivflow/pixivflow.toml")
    here = _touch(tmp_path / "here/pixivflow.toml")
    assert locate_config(None, {"HOME": str(tmp_path / "home")}, here.parent) == here


def test_the_home_folder_is_looked_into(tmp_path):
    path = _touch(tmp_path / ".config/pixivflow/pixivflow.toml")
    assert locate_config(None, {"HOME": str(tmp_path)}, tmp_path) == path


def test_the_base_directory_of_xdg_replaces_that_of_the_home_folder(tmp_path):
    path = _touch(tmp_path / "xdg/pixivflow/pixivflow.toml")
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert locate_config(None, env, tmp_path) == path


def test_a_named_file_that_is_not_there_is_never_replaced_by_another(tmp_path):
    _touch(tmp_path / "pixivflow.toml")
    with pytest.raises(ConfigNotFound) as caught:
        locate_config(Path("typo.toml"), {}, tmp_path)
    assert caught.value.looked == (tmp_path / "typo.toml",)


def test_every_place_that_was_looked_at_is_named_with_what_to_do(tmp_path):
    with pytest.raises(ConfigNotFound) as caught:
        locate_config(None, {"HOME": str(tmp_path)}, tmp_path / "here")
    text = str(caught.value)
    assert str(tmp_path / "here/pixivflow.toml") in text
    assert str(tmp_path / ".config/pixivflow/pixivflow.toml") in text
    assert "/etc/pixivflow/pixivflow.toml" in text
    assert "pixivflow config init" in text


@pytest.mark.parametrize(
    ("path", "env", "state"),
    [
        ("/etc/pixivflow/pixivflow.toml", {"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}, "/var/lib/a"),
        ("/etc/pixivflow/pixivflow.toml", {"HOME": "/h"}, "/var/lib/pixivflow"),
        ("/etc/pixivflow/second.toml", {"HOME": "/h"}, "/var/lib/pixivflow/second"),
        ("/srv/pixivflow.toml", {"HOME": "/h"}, "/h/.local/state/pixivflow"),
        ("/srv/pixivflow.toml", {"HOME": "/h", "XDG_STATE_HOME": "/s"}, "/s/pixivflow"),
        ("/srv/pixivflow.toml", {"HOME": "/h", "XDG_STATE_HOME": "relative"}, "/h/.local/state/pixivflow"),
    ],
)
def test_the_state_directory_follows_from_file_and_environment(path, env, state):
    assert default_state_dir(Path(path), env) == Path(state)


def test_a_place_that_the_system_refuses_to_look_at_is_named_with_the_user(tmp_path):
    path = tmp_path / ("x" * 300)
    with pytest.raises(ConfigUnreadable) as caught:
        locate_config(path, {}, tmp_path)
    assert str(caught.value).startswith(
        f"{path} cannot be read by the user {user_name()}: File name too long;"
    )


def test_a_user_without_a_name_is_told_by_number():
    assert user_name(2**31 - 77) == "#2147483571"
