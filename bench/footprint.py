"""Idle footprint: a daemon with 100 schedules, none due. Run: python -m bench.footprint [--seconds 60]."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

BUDGET_RSS_MIB = 64
BUDGET_CPU_PERCENT = 0.2


def write_config(folder: Path, schedules: int) -> Path:
    """A configuration whose schedules are due once a year."""
    parts = [
        "[accounts.main]\nrefresh_token = 'bench'\n[storage]\nstate_dir = 'state'\ndownload_dir = 'files'\n",
        "[[targets]]\nid = 'one'\nmode = 'search'\ntags = ['x']\nlimit = 1\n",
        *(
            f"[[schedules]]\nid = 's{n}'\ncron = '{n % 60} 3 1 1 *'\ntargets = ['one']\n"
            for n in range(schedules)
        ),
    ]
    path = folder / "pixivflow.toml"
    path.write_text("\n".join(parts))
    return path


def memory_mib(pid: int, field: str) -> float:
    """A field of the process's memory, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise ValueError(field)


def cpu_s(pid: int) -> float:
    """Seconds of processor time the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(seconds: float, schedules: int) -> tuple[float, float, float]:
    """Peak and resident MiB, and percent of a core, of an idle daemon."""
    with tempfile.TemporaryDirectory() as folder:
        config = write_config(Path(folder), schedules)
        with subprocess.Popen(
            [sys.executable, "-m", "pixivflow", "-c", str(config), "run"], stderr=subprocess.PIPE
        ) as daemon:
            assert daemon.stderr is not None
            while b'"ready"' not in (line := daemon.stderr.readline()):
                if not line:
                    raise SystemExit("the daemon did not start")
            time.sleep(2)
            used, began = cpu_s(daemon.pid), time.monotonic()
            time.sleep(seconds)
            percent = 100 * (cpu_s(daemon.pid) - used) / (time.monotonic() - began)
            result = memory_mib(daemon.pid, "VmHWM"), memory_mib(daemon.pid, "VmRSS"), percent
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(10)
            return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--schedules", type=int, default=100)
    options = parser.parse_args()
    peak, resident, percent = measure(options.seconds, options.schedules)
    table = Table(
        "what",
        "measured",
        "budget",
        title=f"idle daemon, {options.schedules} schedules, {options.seconds:.0f} s",
    )
    table.add_row("peak resident memory", f"{peak:.1f} MiB", f"{BUDGET_RSS_MIB} MiB")
    table.add_row("resident memory at the end", f"{resident:.1f} MiB", "")
    table.add_row("processor", f"{percent:.2f} % of a core", f"{BUDGET_CPU_PERCENT} %")
    Console().print(table)


if __name__ == "__main__":
    main()
