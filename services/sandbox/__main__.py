"""The sandbox's process: a parent that listens, and one worker that answers."""

from functools import partial

from services.sandbox.app import SERVICE, make_app
from services.sandbox.ledger import Ledger, LedgerUnavailableError
from shared.platform.process import exit_with_error, start_process
from shared.platform.settings import SandboxSettings, Settings
from shared.platform.web.gunicorn_server import gunicorn_config, serve

_THREADS = 128
"""Each charge that is kept silent about holds one."""
_GRACE_S = 1
"""No stop waits for a silence to end, nor for one who does not take a notification: the ledger knows of both."""


class NotWantedError(Exception):
    """The settings want no sandbox here."""


def main() -> None:
    settings = start_process(
        SERVICE, refused_in_production="The sandbox moves no real money: do not start it here."
    )
    try:
        sandbox = _sandbox_in(settings)
        Ledger(sandbox.ledger).close()
    except (NotWantedError, LedgerUnavailableError) as error:
        exit_with_error(SERVICE, error)
    config = gunicorn_config(
        settings.http_host, settings.http_port, settings.metrics_dir, workers=1, threads=_THREADS
    )
    serve(
        partial(make_app, sandbox, settings.metrics_dir),
        {**config, "graceful_timeout": _GRACE_S, "proc_name": SERVICE},
    )


def _sandbox_in(settings: Settings) -> SandboxSettings:
    if settings.sandbox is None:
        raise NotWantedError("SANDBOX_SECRET is not set: nobody could trust its notifications")
    return settings.sandbox


if __name__ == "__main__":
    main()
