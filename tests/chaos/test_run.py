"""`make chaos` for two minutes, as a part of `make test-all`."""

import subprocess
import sys
from pathlib import Path

import pytest

from chaos.fault_plan import RANDOM_KINDS
from chaos.history import FaultBegan, FaultEnded, Record, SettlingEnded, read_history
from chaos.layout import PORTS
from stack.ports import is_free
from stack.programs import PROJECT

SECONDS = 120
MOST_SECONDS = 900
"""With start, settling and judging, on a busy machine."""


def find_port_base() -> int:
    """Return the first of PORTS ports that are free."""
    for port_base in range(15_000, 31_000, PORTS):
        if all(is_free(port) for port in range(port_base, port_base + PORTS)):
            return port_base
    raise AssertionError("no free ports")


def run_chaos(directory: Path, seed: int, *options: str) -> list[Record]:
    """Run `python -m chaos`, which has to pass, and return its history."""
    command = [
        *(sys.executable, "-m", "chaos", f"--seed={seed}", f"--directory={directory}"),
        *(f"--port-base={find_port_base()}", *options),
    ]
    done = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    records = list(read_history(directory / f"history-{seed}.jsonl"))
    assert [record.settled for record in records if isinstance(record, SettlingEnded)] == [True]
    return records


@pytest.mark.kills
@pytest.mark.timeout(MOST_SECONDS + 60)
def test_two_minutes_of_faults_lose_double_and_leave_nothing(tmp_path: Path) -> None:
    records = run_chaos(tmp_path, 24, f"--duration={SECONDS}")
    begun = [record for record in records if isinstance(record, FaultBegan)]
    assert len({fault.fault for fault in begun}) >= len(RANDOM_KINDS) - 3
    assert sum(isinstance(record, FaultEnded) for record in records) == len(begun)
