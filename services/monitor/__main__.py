"""The monitor's process."""

from services.monitor.app import make_worker_app
from services.monitor.workshop import SERVICE
from shared.web.pages_process import run_pages


def main() -> None:
    run_pages(SERVICE, make_worker_app, lambda settings: settings.monitor)


if __name__ == "__main__":
    main()
