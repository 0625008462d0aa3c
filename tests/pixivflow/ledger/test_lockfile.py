import os
import stat
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

from pixivflow.ledger.faults import LedgerRefused
from pixivflow.ledger.lockfile import LedgerLocked, ledger_lock, lock_holder

HOLDING = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from pixivflow.ledger.lockfile import ledger_lock

    with ledger_lock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.readline()
    """
)


ASKING = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from pixivflow.ledger.lockfile import lock_holder

    print("asking", flush=True)
    while True:
        lock_holder(Path(sys.argv[1]))
    """
)


@contextmanager
def other_process(path):
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.lock"


def test_a_second_process_is_refused_and_told_who_holds(path):
    with other_process(path) as process:
        with pytest.raises(LedgerLocked, match=f"pid {process.pid}") as caught, ledger_lock(path):
            pass
        assert str(path) in str(caught.value)
        assert lock_holder(path) == process.pid


def test_the_death_of_the_holder_frees_the_lock(path):
    with other_process(path) as process:
        process.kill()
        process.wait(20)
        assert lock_holder(path) is None
        with ledger_lock(path):
            assert lock_holder(path) == os.getpid()


def test_the_end_of_the_block_frees_the_lock_and_leaves_the_file(path):
    with ledger_lock(path):
        pass
    assert lock_holder(path) is None
    assert path.exists()
    with ledger_lock(path):
        pass


def test_an_error_in_the_block_frees_the_lock(path):
    with pytest.raises(LookupError), ledger_lock(path):
        raise LookupError
    assert lock_holder(path) is None


def test_the_lock_file_is_private(path):
    with ledger_lock(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_that_never_was_is_free(path):
    assert lock_holder(path) is None


def test_a_started_program_does_not_inherit_the_lock(path):
    with ledger_lock(path):
        own = [
            entry
            for entry in Path("/proc/self/fd").iterdir()
            if entry.is_symlink() and entry.resolve() == path
        ]
        assert [os.get_inheritable(int(entry.name)) for entry in own] == [False]


def test_a_forked_child_does_not_keep_a_lock_that_was_given_back(path):
    reading, writing = os.pipe()
    with ledger_lock(path):
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0)
    try:
        assert lock_holder(path) is None
    finally:
        os.write(writing, b"x")
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


def test_asking_for_the_holder_never_makes_an_owner_fail(path):
    command = [sys.executable, "-c", ASKING, str(path)]
    with ledger_lock(path):
        pass
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "asking\n"
            for _ in range(300):
                with ledger_lock(path):
                    pass
        finally:
            process.kill()


def test_a_folder_that_is_missing_is_named(tmp_path):
    path = tmp_path / "missing" / "ledger.lock"
    with pytest.raises(LedgerRefused, match=r"missing/ledger\.lock"), ledger_lock(path):
        pass
