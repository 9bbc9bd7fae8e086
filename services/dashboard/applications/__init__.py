"""A merchant's applications: their names, payment methods, credentials and webhooks."""
