"""Tests of tracing: spans in memory, on the real engines, and over OTLP to a local collector."""
