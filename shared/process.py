"""How every process of ours begins: settings or a clear refusal, logging, and a wish to stop on a signal."""

import signal
import sys
from threading import Event
from types import FrameType
from typing import NoReturn

from shared.logs import configure_logging, log_uncaught_exceptions
from shared.settings import Settings, SettingsError, read_settings

# sysexits.h: something was found in an unconfigured or misconfigured state.
EX_CONFIG = 78


def begin(service: str) -> Settings:
    """Reads the settings and sets up logging; ends the process with a list of problems when it cannot."""
    try:
        settings = read_settings()
    except SettingsError as error:
        refuse(service, error)
    configure_logging(service, settings.log_format, settings.log_level)
    log_uncaught_exceptions()
    return settings


def refuse(service: str, error: Exception) -> NoReturn:
    sys.stderr.write(f"{service}: {error}\n")
    sys.exit(EX_CONFIG)


def stop_on_signal() -> Event:
    """An event that SIGTERM or SIGINT sets."""
    stop = Event()

    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    return stop
