"""The monitor's process."""

from services.monitor.app import make_worker_app
from services.monitor.dependencies import SERVICE
from shared.platform.web.gunicorn_server import run_page_service


def main() -> None:
    run_page_service(SERVICE, make_worker_app, lambda settings: settings.monitor, uses_kafka=True)


if __name__ == "__main__":
    main()
