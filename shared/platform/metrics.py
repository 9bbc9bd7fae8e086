"""Renders the metrics of this process, or of all workers that share a directory, in Prometheus' format."""

from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, values
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead


class MetricsModeError(Exception):
    """prometheus_client chose its mode when it was imported, and it is not the one the service needs."""


def require_metrics_mode(metrics_dir: Path | None) -> None:
    """Raise MetricsModeError if counts would silently be those of one worker only."""
    is_shared = values.ValueClass is not values.MutexValue
    if is_shared == (metrics_dir is not None):
        return
    raise MetricsModeError(
        "set PROMETHEUS_MULTIPROC_DIR to the metrics directory before the service starts"
        if metrics_dir
        else "PROMETHEUS_MULTIPROC_DIR is set, but the service was given no metrics directory"
    )


def require_shared_directory(workers: int, metrics_dir: Path | None) -> None:
    if workers > 1 and metrics_dir is None:
        raise ValueError("several workers need a metrics directory to share")


def render_metrics(metrics_dir: Path | None, accept: str = "") -> tuple[bytes, str]:
    """Return the metrics and their content type. A single process also reports its memory, CPU and open files."""
    registry = REGISTRY
    if metrics_dir:
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=str(metrics_dir))  # type: ignore[no-untyped-call]
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def clear_metrics_dir(metrics_dir: Path) -> None:
    """Delete the counts of an earlier run."""
    metrics_dir.mkdir(parents=True, exist_ok=True)
    for stale in metrics_dir.glob("*.db"):
        stale.unlink(missing_ok=True)


def forget_worker_gauges(pid: int, metrics_dir: Path) -> None:
    """Delete the gauges of a worker that has ended; its counts stay."""
    mark_process_dead(pid, path=str(metrics_dir))  # type: ignore[no-untyped-call]
