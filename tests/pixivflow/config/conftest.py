from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a configuration file that only its owner may read."""

    def write_file(text: str | bytes, *, mode: int = 0o600) -> Path:
        path = tmp_path / "pixivflow.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        path.chmod(mode)
        return path

    return write_file
