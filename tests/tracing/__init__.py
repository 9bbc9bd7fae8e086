"""Traces from end to end: in memory, on the real engines, and over OTLP to a collector on loopback."""
