"""Tracing is on if the address of a collector is set and tracing is not disabled."""

import logging

import pytest

from shared.platform.settings import SettingsError, TracingSettings, read_settings
from shared.platform.tracing.opentelemetry_recorder import RateLimitedHandler
from tests.logs import capture_logs


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://mizan:hush@127.0.0.1/mizan")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")


def test_tracing_is_off_by_default() -> None:
    assert read_settings().tracing is None


@pytest.mark.parametrize("base", ["http://collector:4318", "http://collector:4318/"])
def test_endpoint_of_a_collector_gets_the_path_of_traces(monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", base)
    assert read_settings().tracing == TracingSettings("http://collector:4318/v1/traces")


def test_traces_endpoint_is_used_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces.example/take")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1000")
    assert read_settings().tracing == TracingSettings("https://traces.example/take", 1000)


def test_tracing_can_be_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert read_settings().tracing is None


@pytest.mark.parametrize(
    "name", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_BSP_MAX_QUEUE_SIZE"]
)
def test_invalid_tracing_settings_are_reported(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "collector:4317")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {name}


def test_repr_of_the_settings_does_not_contain_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some providers put a key into the URL."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example/k3y")
    assert "k3y" not in repr(read_settings())


def test_export_errors_are_logged_once_a_minute() -> None:
    """With the number of suppressed errors."""
    logger = logging.getLogger("opentelemetry.any.thing")
    parent = logging.getLogger("opentelemetry")
    handler = RateLimitedHandler()
    parent.addHandler(handler)
    parent.propagate = False
    try:
        with capture_logs() as log:
            for _ in range(1000):
                logger.error("the collector is away")
            (line,) = log.getvalue().splitlines()
            assert "the collector is away" in line
            handler.next_at = 0.0
            logger.error("the collector is away")
            assert '"held_back": 999' in log.getvalue()
    finally:
        parent.removeHandler(handler)
        parent.propagate = True
