"""The process of a service that people open in a browser: a parent that listens, and workers that answer."""

import logging
from collections.abc import Callable

from flask import Flask

from shared.process import begin, refuse
from shared.sealing import NoSecretKeysError, SecretBox
from shared.settings import CheckoutSettings, DashboardSettings, MonitorSettings, Settings
from shared.web.gunicorn_config import gunicorn_config
from shared.web.gunicorn_server import serve


def run_pages(
    service: str,
    make_worker_app: Callable[[], Flask],
    size: Callable[[Settings], CheckoutSettings | DashboardSettings | MonitorSettings],
) -> None:
    """`size` says where its numbers of workers and threads are."""
    settings = begin(service)
    try:
        SecretBox(settings.secret_keys)
        config = gunicorn_config(
            settings.http_host,
            settings.http_port,
            settings.metrics_dir,
            workers=size(settings).workers,
            threads=size(settings).threads,
        )
    except (NoSecretKeysError, ValueError) as error:
        refuse(service, error)
    serve(make_worker_app, config)
    logging.getLogger(f"services.{service}").info("stopped")
