"""`python -m chaos`, behind `make chaos`: a stack under load and faults, and the verdict."""

import argparse
import secrets
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import FrameType

from chaos.history import read_history
from chaos.judge.verdict import summarise
from chaos.live_line import LiveLine
from chaos.load.transactions import LoadError
from chaos.releases import Release, Releases
from chaos.run import RunOptions, judge, run
from chaos.totals import add_run
from stack.errors import StackError
from stack.options import read_options

_EXIT_NO_RUN = 2


def main(arguments: list[str]) -> int:
    given = _parser().parse_args(arguments)
    seed = given.seed if given.seed is not None else secrets.randbelow(1_000_000)
    directory = Path(given.directory or tempfile.mkdtemp(prefix="mizan-chaos-")).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    history = directory / f"history-{seed}.jsonl"
    if history.exists():
        print(f"{history} exists already: choose another directory or seed.", file=sys.stderr)
        return _EXIT_NO_RUN
    live = LiveLine(given.duration)
    live.note(f"make chaos DURATION={given.duration} SEED={seed} BROKERS={given.brokers}")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        embedded = replace(
            read_options(),
            directory=directory / "stack",
            port_base=given.port_base,
            brokers=given.brokers,
            database_url=None,
            kafka_bootstrap_servers=None,
            colour=False,
        )
        options = RunOptions(given.duration, seed, given.rate, not given.no_faults, history, embedded)
        if previous := given.upgrade_from or given.downgrade_to:
            first = Release.PREVIOUS if given.upgrade_from else Release.CURRENT
            options = replace(options, releases=Releases(directory, previous, first))
        run(options, live)
    except (StackError, LoadError) as error:
        live.note(f"There was no run: {error}")
        return _EXIT_NO_RUN
    except KeyboardInterrupt:
        live.note(f"Interrupted. The history so far is {history}")
        return 128 + signal.SIGINT
    status = judge(history)
    live.note(f"History: {history}")
    if given.totals:
        add_run(given.totals, {**summarise(read_history(history)).as_json(), "brokers": given.brokers})
    if status == 0 and not given.keep:
        shutil.rmtree(directory / "stack", ignore_errors=True)
    else:
        live.note(f"Logs: {directory / 'stack' / 'logs'}")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--duration", type=int, default=180, help="seconds of load (default: 180)")
    parser.add_argument("--seed", type=int, help="of load and faults (default: a random one)")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=3)
    parser.add_argument("--rate", type=float, default=10.0, help="orders a second (default: 10)")
    parser.add_argument("--port-base", type=int, default=20_000, help="its ports are the 200 from here on")
    parser.add_argument("--directory", help="for the history and the stack (default: a temporary one)")
    parser.add_argument("--totals", type=Path, help="a file to add the totals of this run to")
    parser.add_argument("--no-faults", action="store_true", help="load only")
    releases = parser.add_mutually_exclusive_group()
    releases.add_argument(
        "--upgrade-from", metavar="COMMIT", help="start with that release; change to this one under load"
    )
    releases.add_argument(
        "--downgrade-to", metavar="COMMIT", help="start with this release; change to that one under load"
    )
    parser.add_argument("--keep", action="store_true", help="keep the data of the stack if nothing was found")
    return parser


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
