"""Random deaths, a few seeds of them; `tests/crash/campaign.py` runs as many as one likes."""

from pathlib import Path

import pytest
import trio

from tests.crash.campaign import run_seed


@pytest.mark.parametrize("seeds", [(0, 1), (2, 3), (4, 5)])
async def test_random_deaths_change_nothing_that_a_reader_sees(
    tmp_path: Path, seeds: tuple[int, ...]
) -> None:
    async with trio.open_nursery() as nursery:
        for seed in seeds:
            folder = tmp_path / str(seed)
            folder.mkdir()
            nursery.start_soon(run_seed, seed, folder)
