"""The commented example that `pixivflow config init` writes."""

from importlib.resources import files
from pathlib import Path

_NAME = "example.toml"


def example() -> str:
    """Return the text of the example: complete, without variables, valid as it is."""
    return files("pixivflow.config").joinpath(_NAME).read_text(encoding="utf-8")


def write_example(path: Path) -> None:
    """Write the example to a new file. Raises FileExistsError, never overwriting one, and other OSErrors."""
    with path.open("x", encoding="utf-8") as file:
        file.write(example())
