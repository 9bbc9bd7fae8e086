"""Tracing: spans, their traceparent, and the OpenTelemetry recorder, which is imported only if tracing is on."""
