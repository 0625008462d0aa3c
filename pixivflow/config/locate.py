"""Where the configuration is, and where state goes when it does not say."""

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "pixivflow.toml"
SYSTEM_FOLDER = Path("/etc/pixivflow")
SYSTEM_STATE = Path("/var/lib/pixivflow")


class ConfigNotFound(Exception):
    """There is no configuration file at any of the places in ``looked``."""

    def __init__(self, looked: tuple[Path, ...]) -> None:
        self.looked = looked
        places = "".join(f"\n  {path}" for path in looked)
        super().__init__(
            f"no configuration file; looked for:{places}\n"
            "write one with `pixivflow config init`, or name one with -c FILE or $PIXIVFLOW_CONFIG"
        )


class ConfigUnreadable(Exception):
    """The system does not let this user look whether the file is there."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"{path} cannot be read by the user {user_name()}: {error.strerror}; run this as a user who may read it, "
            "or name another file with -c FILE"
        )


def user_name(uid: int | None = None) -> str:
    """Return the name of a user, by default of the one that this process acts as."""
    number = os.geteuid() if uid is None else uid
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"#{number}"


def locate_config(explicit: Path | None, env: Mapping[str, str], cwd: Path) -> Path:
    """Return the absolute path of the file to use: -c, $PIXIVFLOW_CONFIG, or the first that exists.

    Raises ConfigNotFound, and ConfigUnreadable for a place that this user may not look at. A file that was named is
    never replaced by another.
    """
    named = explicit or (Path(env["PIXIVFLOW_CONFIG"]) if env.get("PIXIVFLOW_CONFIG") else None)
    if named is not None:
        places = [cwd / named]
    else:
        places = [
            cwd / FILE_NAME,
            _xdg(env, "XDG_CONFIG_HOME", ".config") / "pixivflow" / FILE_NAME,
            SYSTEM_FOLDER / FILE_NAME,
        ]
    for place in places:
        try:
            place.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ConfigUnreadable(place, error) from error
        return place
    raise ConfigNotFound(tuple(places))


def default_state_dir(config_path: Path, env: Mapping[str, str]) -> Path:
    """Return the state directory of a file that names none.

    $STATE_DIRECTORY, else /var/lib/pixivflow (for /etc/pixivflow/NAME.toml: a folder NAME in it), else XDG.
    """
    if given := env.get("STATE_DIRECTORY"):
        return Path(given.split(":")[0])
    if config_path.parent == SYSTEM_FOLDER:
        return SYSTEM_STATE if config_path.name == FILE_NAME else SYSTEM_STATE / config_path.stem
    return _xdg(env, "XDG_STATE_HOME", ".local/state") / "pixivflow"


def _xdg(env: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Return a base folder; the specification says that a relative value is to be ignored."""
    given = Path(env.get(variable) or "")
    return given if given.is_absolute() else Path(env.get("HOME") or Path.home()) / fallback
