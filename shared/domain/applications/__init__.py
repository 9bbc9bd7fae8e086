"""Merchants' applications: the registry, credentials, webhook secrets and provider accounts."""
