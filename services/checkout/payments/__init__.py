"""Payments of customers: start, confirm with a one-time code, limits, settlement."""
