"""Tests of shared/platform."""
