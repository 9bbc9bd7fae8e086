"""A merchant's applications: name, payment methods, provider accounts, credentials and webhook."""
