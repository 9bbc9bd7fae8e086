"""Turns tracing on in a process, where it is configured."""

import atexit

from shared.platform.settings import TracingSettings
from shared.platform.tracing.spans import record_with


def start_tracing(service: str, settings: TracingSettings | None) -> None:
    """In the process that makes the spans, after a fork; what is left is sent when it ends."""
    if settings is None:
        return
    # Only now: they take a tenth of a second and ten megabytes that nobody else should pay.
    from shared.platform.tracing.opentelemetry_recorder import OpenTelemetryRecorder, exporting_provider  # noqa: PLC0415

    provider = exporting_provider(service, settings)
    record_with(OpenTelemetryRecorder(provider))
    atexit.register(provider.shutdown)
