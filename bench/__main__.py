"""Runs all benchmarks on new engines, prints a table and writes bench.json."""

import json
import shutil
from pathlib import Path

import bench.api
import bench.checkout
import bench.dashboard
import bench.expiry
import bench.expiry_wave
import bench.noisy_neighbour
import bench.relay
import bench.retry_lateness
import bench.webhook_memory
import bench.webhooks
import bench.webhooks_latency
import bench.webhooks_whole
from bench.figures import Figure
from bench.resources import PeakMemory
from bench.world import World
from stack.engines import embedded_engines
from stack.options import read_options

MEASUREMENTS = (
    bench.api.measure,
    bench.checkout.measure,
    bench.dashboard.measure,
    bench.expiry.measure,
    bench.expiry_wave.measure,
    bench.relay.measure,
    bench.webhooks.measure,
    bench.webhooks_whole.measure,
    bench.webhooks_latency.measure,
    bench.noisy_neighbour.measure,
    bench.retry_lateness.measure,
    bench.webhook_memory.measure,
)


def main() -> None:
    directory = read_options().directory
    engines_directory = directory / "bench"
    shutil.rmtree(engines_directory, ignore_errors=True)
    figures: list[Figure] = []
    with embedded_engines(engines_directory, durable=True) as engines, PeakMemory() as memory:
        world = World(engines)
        for measure in MEASUREMENTS:
            figures.extend(measure(world))
    figures.extend(memory.figures())
    shutil.rmtree(engines_directory, ignore_errors=True)
    _print(figures)
    _write(directory / "bench.json", figures)


def _print(figures: list[Figure]) -> None:
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        value = f"{figure.value:,.0f}" if figure.value >= 100 else f"{figure.value:.3g}"
        print(f"{figure.name:{width}}  {value:>10}  {figure.meaning}")


def _write(path: Path, figures: list[Figure]) -> None:
    path.write_text(json.dumps({figure.name: figure.value for figure in figures}, indent=2) + "\n")
    print(f"\nwritten to {path}")


if __name__ == "__main__":
    main()
