"""/healthz, /readyz and /metrics (DESIGN §5)."""

from pathlib import Path

import pytest
from flask import Flask
from prometheus_client.parser import text_string_to_metric_families

from shared.platform.metrics import MetricsModeError, clear_metrics_dir
from shared.platform.web.app import create_app
from shared.platform.web.gunicorn_server import gunicorn_config


def nothing_wrong() -> None:
    pass


def wrong() -> None:
    raise ConnectionError("postgresql://mizan:s3cret@db does not answer")


def test_healthz_reports_alive_even_if_checks_fail() -> None:
    """Alive is not ready: a service must not be restarted because its database is down."""
    answer = create_app("shop", {"database": wrong}).test_client().get("/healthz")
    assert (answer.status_code, answer.json) == (200, {"status": "alive"})
    assert answer.headers["Cache-Control"] == "no-store"


def test_readyz_is_200_when_all_checks_pass() -> None:
    """Every check is listed."""
    answer = create_app("shop", {"database": nothing_wrong}).test_client().get("/readyz")
    assert (answer.status_code, answer.json) == (200, {"status": "ready", "checks": {"database": "ok"}})


def test_readyz_is_503_when_one_check_fails() -> None:
    """The response has the reason, without the password."""
    answer = create_app("shop", {"database": wrong, "kafka": nothing_wrong}).test_client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json == {
        "status": "not ready",
        "checks": {"database": "postgresql://mizan:[redacted]@db does not answer", "kafka": "ok"},
    }


def test_metrics_are_prometheus_text_with_process_metrics(app: Flask) -> None:
    """A single process also reports its own memory and CPU."""
    answer = app.test_client().get("/metrics")
    assert answer.status_code == 200
    assert answer.content_type.startswith("text/plain; version=")
    families = {family.name for family in text_string_to_metric_families(answer.text)}
    assert {"process_resident_memory_bytes", "mizan_http_requests"} <= families


def test_metrics_are_openmetrics_on_request(app: Flask) -> None:
    """A scraper that prefers OpenMetrics gets it."""
    answer = app.test_client().get(
        "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    assert answer.content_type.startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_metrics_directory_without_multiprocess_mode_is_refused(tmp_path: Path) -> None:
    """A service that would silently count only one worker does not start."""
    with pytest.raises(MetricsModeError, match="PROMETHEUS_MULTIPROC_DIR"):
        create_app("shop", {}, metrics_dir=tmp_path)


def test_several_workers_without_a_metrics_directory_are_refused() -> None:
    """Each would report only its own counts."""
    with pytest.raises(ValueError, match="metrics directory"):
        gunicorn_config("127.0.0.1", 0, metrics_dir=None, workers=2)


def test_clearing_creates_the_metrics_directory_and_deletes_old_counts(tmp_path: Path) -> None:
    """Counts of earlier runs are deleted, other files stay."""
    directory = tmp_path / "metrics"
    clear_metrics_dir(directory)
    (directory / "counter_1.db").touch()
    (directory / "notes.txt").touch()
    clear_metrics_dir(directory)
    assert [path.name for path in directory.iterdir()] == ["notes.txt"]
