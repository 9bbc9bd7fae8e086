"""Runs benchmarks on new engines, prints a table and writes bench.json.

Usage: python -m bench [NAMES], with names of measurements, comma-separated; without them, all but `growth` are run. The
exit code is 1 if a measurement failed, and 2 if there is none with such a name.
"""

import shutil
import sys

import psutil

import bench.api
import bench.checkout
import bench.dashboard
import bench.expiry
import bench.expiry_wave
import bench.growth
import bench.noisy_neighbour
import bench.relay
import bench.retry_lateness
import bench.steps
import bench.webhook_memory
import bench.webhooks
import bench.webhooks_latency
import bench.webhooks_whole
import bench.worker_kills
from bench.baseline import describe_worse, read_baseline
from bench.resources import PeakMemory
from bench.runner import (
    FigureFile,
    Measure,
    Runner,
    UnknownMeasurementError,
    format_table,
    select_measurements,
)
from bench.world import World
from stack.engines import embedded_engines
from stack.options import read_options

MEASUREMENTS: dict[str, Measure] = {
    module.__name__.removeprefix("bench."): module.measure
    for module in (
        bench.api,
        bench.checkout,
        bench.dashboard,
        bench.expiry,
        bench.expiry_wave,
        bench.relay,
        bench.webhooks,
        bench.webhooks_whole,
        bench.webhooks_latency,
        bench.noisy_neighbour,
        bench.retry_lateness,
        bench.webhook_memory,
        bench.worker_kills,
        bench.steps,
    )
}
"""By the name of their module, in the order in which they run."""
_ONLY_BY_NAME: dict[str, Measure] = {"growth": bench.growth.measure}
"""They take too long for each run."""
_FAILED = 1
_WRONG_USAGE = 2


def main(arguments: list[str]) -> int:
    try:
        selected = select_measurements(MEASUREMENTS | _ONLY_BY_NAME, ",".join(arguments or MEASUREMENTS))
    except UnknownMeasurementError as error:
        _show(f"bench: {error}")
        return _WRONG_USAGE
    is_complete = selected.keys() == MEASUREMENTS.keys()
    directory = read_options().directory
    engines_directory = directory / "bench"
    shutil.rmtree(engines_directory, ignore_errors=True)
    file = FigureFile(directory / "bench.json", keeps_others=not is_complete)
    runner = Runner(file, _show)
    psutil.cpu_times_percent()  # each call tells the shares since the one before
    _show("starting PostgreSQL and Kafka")
    with embedded_engines(engines_directory, durable=True) as engines, PeakMemory() as memory:
        runner.run(selected, World(engines))
    if is_complete:  # the peaks of a selection say little
        for figure in memory.figures():
            runner.add(figure)
    shutil.rmtree(engines_directory, ignore_errors=True)
    _show(f"\n{format_table(runner.figures)}\n\nwritten to {file.path}")
    stolen = getattr(psutil.cpu_times_percent(), "steal", 0.0)  # Linux alone tells it
    _show(f"{stolen:.0f}% of the processor time went to other machines")
    worse = list(describe_worse(runner.figures, read_baseline()))
    _show("\n  ".join([f"worse than bench/baseline.json, beyond the noise: {len(worse)} figures", *worse]))
    if runner.failed:
        _show(f"failed: {', '.join(runner.failed)}")
        return _FAILED
    return 0


def _show(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
