"""HTTP for every service: application, middleware, errors, health and metrics, gunicorn, browser security."""
