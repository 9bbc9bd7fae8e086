"""The dashboard's process."""

from services.dashboard.app import make_worker_app
from services.dashboard.dependencies import SERVICE
from shared.platform.web.gunicorn_server import run_pages


def main() -> None:
    run_pages(SERVICE, make_worker_app, lambda settings: settings.dashboard)


if __name__ == "__main__":
    main()
