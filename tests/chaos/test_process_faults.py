"""Faults of processes, and jumps of the product's clock, on real ones."""

import subprocess
import sys
import time
from pathlib import Path
from resource import RLIM_INFINITY

import psutil

from chaos.clock import ProductClock
from chaos.history import ClockMoved, History, read_history
from chaos.process_faults import limit_files
from shared.platform.database.pool import fetch_scalar
from shared.platform.settings import DatabaseSettings
from tests.database_roles import open_as

# Writes a block for each line of its input, as PostgreSQL and Java do: a write past the limit fails, nobody dies.
_WRITER = """
import os, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in sys.stdin:
    try:
        os.write(file, b"x" * 4096)
        print("written", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


def test_a_full_disk_fails_writes_until_there_is_space_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:

        def write() -> str:
            assert writer.stdin is not None
            assert writer.stdout is not None
            print(file=writer.stdin, flush=True)
            return writer.stdout.readline().strip()

        process = psutil.Process(writer.pid)
        assert write() == "written"
        limit_files([process], 4096)
        assert write() == "File too large"
        limit_files([process], RLIM_INFINITY)
        assert write() == "written"


def test_the_clock_only_moves_forward_and_services_may_still_read_it(
    database_settings: DatabaseSettings, tmp_path: Path
) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path)
    clock = ProductClock(database_settings.url, history)
    clock.move(450)
    clock.move(50)
    history.close()
    with open_as("mizan_api", database_settings) as database, database.cursor() as cursor:
        seconds = float(fetch_scalar(cursor, "select extract(epoch from mizan_now())::float8"))
    assert abs(seconds - time.time() - 500) < 20
    assert abs(clock.now() - seconds) < 20
    moves = [record for record in read_history(path) if isinstance(record, ClockMoved)]
    assert [move.seconds for move in moves] == [450, 50]
    assert all(move.began_at <= move.at for move in moves)
