"""Tests of shared/domain."""
