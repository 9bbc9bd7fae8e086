"""The checkout's process: a parent that listens, and workers that answer."""

import logging

from services.checkout.app import make_worker_app
from services.checkout.workshop import SERVICE
from shared.process import begin, refuse
from shared.sealing import NoSecretKeysError, SecretBox
from shared.web.gunicorn_config import gunicorn_config
from shared.web.gunicorn_server import serve


def main() -> None:
    settings = begin(SERVICE)
    try:
        SecretBox(settings.secret_keys)
        config = gunicorn_config(
            settings.http_host,
            settings.http_port,
            settings.metrics_dir,
            workers=settings.checkout.workers,
            threads=settings.checkout.threads,
        )
    except (NoSecretKeysError, ValueError) as error:
        refuse(SERVICE, error)
    serve(make_worker_app, config)
    logging.getLogger("services.checkout").info("stopped")


if __name__ == "__main__":
    main()
