"""Starts the dashboard."""

from services.dashboard.app import make_worker_app
from services.dashboard.dependencies import SERVICE
from shared.platform.web.gunicorn_server import run_page_service


def main() -> None:
    run_page_service(SERVICE, make_worker_app, lambda settings: settings.dashboard)


if __name__ == "__main__":
    main()
