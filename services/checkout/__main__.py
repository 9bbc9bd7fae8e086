"""The process of the checkout's pages."""

from services.checkout.app import make_worker_app
from services.checkout.dependencies import SERVICE
from shared.platform.web.gunicorn_server import run_page_service


def main() -> None:
    run_page_service(SERVICE, make_worker_app, lambda settings: settings.checkout)


if __name__ == "__main__":
    main()
