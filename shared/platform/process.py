"""Takes an address to listen on, or says clearly why not."""

import logging
import signal
import socket
import sys
from threading import Event
from types import FrameType
from typing import NoReturn

from shared.platform.logs import configure_logging, log_uncaught_exceptions
from shared.platform.production.refusals import refusals
from shared.platform.settings import Environment, Settings, SettingsError, read_environment, read_settings


class PortNotUsableError(Exception):
    """The address cannot be listened on, most often because something else does."""


def listen(host: str, port: int) -> socket.socket:
    """Port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise PortNotUsableError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error


# sysexits.h: something was found in an unconfigured or misconfigured state.
EX_CONFIG = 78

_log = logging.getLogger("shared.platform.process")


def begin(service: str, *, refused_in_production: str | None = None) -> Settings:
    """Reads the settings and sets up logging; ends the process with a list of problems when it cannot.

    `refused_in_production` is why this service must not run there at all."""
    reading = read_environment()
    settings = reading.settings
    if not reading.problems:
        _set_up_logs(service, settings)
    is_production = settings.environment is Environment.PRODUCTION
    problems = dict(refusals(reading))
    if is_production and refused_in_production:
        problems["MIZAN_ENV"] = [refused_in_production]
    if problems:
        refuse(service, SettingsError(problems))
    if is_production and settings.kafka.replication_factor == 1:
        _log.warning("KAFKA_REPLICATION_FACTOR is 1: what is on a broker is lost with its disk")
    return settings


def begin_worker(service: str) -> Settings:
    """As `begin`, in a process that another one started which has begun so."""
    try:
        settings = read_settings()
    except SettingsError as error:
        refuse(service, error)
    _set_up_logs(service, settings)
    return settings


def _set_up_logs(service: str, settings: Settings) -> None:
    configure_logging(service, settings.log_format, settings.log_level)
    log_uncaught_exceptions()


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
