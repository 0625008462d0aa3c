"""The commented example that `pixivflow config init` writes."""

from importlib.resources import files
from pathlib import Path

from pixivflow.config.locate import SYSTEM_FOLDER, default_state_dir

_NAME = "example.toml"


def example() -> str:
    """Return the text of the example: complete, without variables, valid as it is."""
    return files("pixivflow.config").joinpath(_NAME).read_text(encoding="utf-8")


def example_for(path: Path) -> str:
    """Return the example as it fits a file at ``path``: below /etc no folder for works lies beside the file."""
    text, place = example(), path.absolute()
    if place.parent != SYSTEM_FOLDER:
        return text
    state = default_state_dir(place, {})
    for line in ('download_dir = "downloads"', 'path = "inbox"'):
        key, _, name = line.partition(" = ")
        text = text.replace(f"\n{line}\n", f'\n{key} = "{state}/{name[1:-1]}"\n')
    return text


def write_example(path: Path) -> None:
    """Write the example to a new file. Raises FileExistsError, never overwriting one, and other OSErrors."""
    with path.open("x", encoding="utf-8") as file:
        file.write(example_for(path))
