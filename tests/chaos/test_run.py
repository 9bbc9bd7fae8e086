"""`make chaos` for two minutes, as a part of `make test-all`."""

import subprocess
import sys
from pathlib import Path

import pytest

from chaos.fault_plan import RANDOM_KINDS
from chaos.history import FaultBegan, FaultEnded, SettlingEnded, read_history
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


@pytest.mark.kills
@pytest.mark.timeout(MOST_SECONDS + 60)
def test_two_minutes_of_faults_lose_double_and_leave_nothing(tmp_path: Path) -> None:
    port_base = find_port_base()
    command = [
        *(sys.executable, "-m", "chaos"),
        *(f"--duration={SECONDS}", "--seed=24", f"--directory={tmp_path}", f"--port-base={port_base}"),
    ]
    done = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
    )
    records = list(read_history(tmp_path / "history-24.jsonl"))
    begun = [record for record in records if isinstance(record, FaultBegan)]
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert len({fault.fault for fault in begun}) >= len(RANDOM_KINDS) - 3
    assert sum(isinstance(record, FaultEnded) for record in records) == len(begun)
    assert [record.settled for record in records if isinstance(record, SettlingEnded)] == [True]
