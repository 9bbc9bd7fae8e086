"""Merchants' applications: their registry, their credentials and their webhook secrets."""
