"""Starts a process: settings, logging, tracing, the listening socket, and stopping on a signal."""

import faulthandler
import logging
import resource
import signal
import socket
import sys
from multiprocessing.util import Finalize
from threading import Event
from types import FrameType
from typing import NoReturn

from shared.platform.logs import configure_logging, log_uncaught_exceptions
from shared.platform.production.settings_rules import find_start_problems
from shared.platform.settings import (
    Environment,
    Settings,
    SettingsError,
    TracingSettings,
    read_environment,
    read_settings,
)
from shared.platform.tracing.spans import set_recorder

# sysexits.h: something was found in an unconfigured or misconfigured state.
EX_CONFIG = 78

_log = logging.getLogger("shared.platform.process")


class PortNotUsableError(Exception):
    """The address cannot be used, most often because another process listens on it."""


def start_process(service: str, *, uses_kafka: bool = True) -> Settings:
    """Read the settings and set up logging; end the process with a list of problems if there are any."""
    faulthandler.enable(file=2)  # a crash in a library shows where it happened; 2 is standard error
    parsed = read_environment(uses_kafka=uses_kafka)
    settings = parsed.settings
    if not parsed.problems:
        _set_up_logging(service, settings)
    is_production = settings.environment is Environment.PRODUCTION
    problems = find_start_problems(parsed, service)
    if problems:
        exit_with_error(service, SettingsError(problems))
    if is_production and uses_kafka and settings.kafka.replication_factor == 1:
        _log.warning("KAFKA_REPLICATION_FACTOR is 1: if a broker loses its disk, its records are lost")
    if is_production and settings.secret_keys:
        _log.warning("MIZAN_SECRET_KEYS is still read: run `mizan keys reseal`, then remove it")
    return settings


def start_worker_process(service: str, *, uses_kafka: bool = True) -> Settings:
    """Do the same in a child of a process that `start_process` has checked."""
    try:
        settings = read_settings(uses_kafka=uses_kafka)
    except SettingsError as error:
        exit_with_error(service, error)
    _set_up_logging(service, settings)
    return settings


def _set_up_logging(service: str, settings: Settings) -> None:
    configure_logging(service, settings.log_format, settings.log_level)
    log_uncaught_exceptions()


def exit_with_error(service: str, error: Exception) -> NoReturn:
    sys.stderr.write(f"{service}: {error}\n")
    sys.exit(EX_CONFIG)


def start_tracing(service: str, settings: TracingSettings | None) -> None:
    """Turn tracing on, if it is configured. Call it after fork, in the process that makes the spans.

    Remaining spans are sent when the process ends.
    """
    if settings is None:
        return
    # Imported only now: it takes 0.1 s and 10 MB, which processes without tracing should not pay.
    from shared.platform.tracing.opentelemetry_recorder import OpenTelemetryRecorder, create_provider  # noqa: PLC0415

    provider = create_provider(service, settings)
    set_recorder(OpenTelemetryRecorder(provider))
    # Unlike atexit, it also runs at the end of a process that multiprocessing has forked.
    Finalize(None, provider.shutdown, exitpriority=1)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; port 0 takes a free one. Raises PortNotUsableError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise PortNotUsableError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error


def allow_many_connections() -> None:
    """Raise the limit of open files as far as this process may. Its workers inherit it."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def stop_on_signal() -> Event:
    """Return an event that SIGTERM or SIGINT sets."""
    stop = Event()

    def request_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, request_stop)
    return stop
