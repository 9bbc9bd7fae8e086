"""The process of the sandbox: a parent that listens, and one worker."""

from functools import partial

from services.sandbox.app import SERVICE, make_app
from services.sandbox.ledger import Ledger, LedgerUnavailableError
from shared.platform.process import exit_with_error, start_process
from shared.platform.settings import SandboxSettings, Settings
from shared.platform.web.gunicorn_server import gunicorn_config, serve

_THREADS = 128
"""Each charge that is answered late holds one thread."""
_STOP_TIMEOUT_S = 1
"""Stopping does not wait for late answers or slow receivers of notifications: the ledger has recorded both."""


class SandboxNotConfiguredError(Exception):
    """The settings do not configure a sandbox."""


def main() -> None:
    settings = start_process(SERVICE, uses_kafka=False)
    try:
        sandbox = _require_sandbox(settings)
        Ledger(sandbox.ledger).close()
    except (SandboxNotConfiguredError, LedgerUnavailableError) as error:
        exit_with_error(SERVICE, error)
    config = gunicorn_config(
        settings.http_host, settings.http_port, settings.metrics_dir, workers=1, threads=_THREADS
    )
    serve(
        partial(make_app, sandbox, settings.public_urls, settings.metrics_dir),
        {**config, "graceful_timeout": _STOP_TIMEOUT_S, "proc_name": SERVICE},
    )


def _require_sandbox(settings: Settings) -> SandboxSettings:
    if settings.sandbox is None:
        raise SandboxNotConfiguredError(
            "SANDBOX_SECRET is not set: nobody could be authenticated, and no notification signed"
        )
    return settings.sandbox


if __name__ == "__main__":
    main()
