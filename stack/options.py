"""Reads the options of the stack from the environment. No other module of the stack reads it."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import environs
from environs import validate

from shared.platform.settings import read_environment
from stack.broker import BrokerPorts
from stack.errors import StackError

# Separators for Kafka, Java or supervisord. No way of escaping works for all three.
UNUSABLE_IN_PATHS = re.compile(r"""[,;:#%"'\\\x00-\x1f\x7f]""")


@dataclass(frozen=True)
class Options:
    """The options of one stack."""

    directory: Path
    """STACK_DIR, resolved. It contains all state of this stack."""
    cache: Path
    port_base: int
    brokers: int
    database_url: str | None = field(repr=False)
    """An external database; None means that PostgreSQL is embedded."""
    database_role_passwords_file: str | None
    """The passwords of the roles of an external database; None: every program uses `database_url`."""
    kafka_bootstrap_servers: str | None
    """An external Kafka; None means that Kafka is embedded."""
    kafka_passwords: Path | None
    """The directory with the passwords of an external Kafka's principals; None: all clients use the same settings."""
    colour: bool
    inherited: Mapping[str, str] = field(repr=False)
    """Our own environment, which the services inherit. The stack adds to it."""

    broker_ports: tuple[BrokerPorts, ...] | None = None
    """The ports of the embedded brokers, if they are behind proxies; None: free ones, which stay the same."""

    @property
    def is_production(self) -> bool:
        return self.inherited.get("MIZAN_ENV") == "production"


def read_options() -> Options:
    """Return the options, or raise StackError with all values that are not valid."""
    env = environs.FileAwareEnv(eager=False)
    directory = env.str("STACK_DIR", ".run", validate=_is_usable_path)
    port_base = env.int("PORT_BASE", 8000, validate=validate.Range(1024, 65000))
    brokers = env.int("BROKERS", 1, validate=validate.OneOf([1, 3]))
    database_url = env.str("DATABASE_URL", "", validate=_is_postgres_url)
    kafka_bootstrap_servers = env.str("KAFKA_BOOTSTRAP_SERVERS", "", validate=_is_server_list)
    kafka_passwords = env.str("KAFKA_PASSWORDS_DIR", "", validate=_is_usable_path)
    role_passwords_file = env.str("DATABASE_ROLE_PASSWORDS_FILE", "")
    env.str("MIZAN_CACHE_DIR", "", validate=_is_usable_path)
    problems = _find_service_problems()
    try:
        env.seal()
    except environs.EnvValidationError as invalid:
        problems |= _messages(invalid)
    if problems:
        raise _invalid_options(problems)
    return Options(
        directory=Path(directory or ".run").expanduser().resolve(),
        cache=cache_directory(),
        port_base=port_base,
        brokers=brokers,
        database_url=database_url or None,
        database_role_passwords_file=role_passwords_file or None,
        kafka_bootstrap_servers=kafka_bootstrap_servers or None,
        kafka_passwords=Path(kafka_passwords).expanduser().resolve() if kafka_passwords else None,
        colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),
        inherited=dict(os.environ),
    )


def cache_directory() -> Path:
    """Return the directory of Kafka's jars, which all checkouts of a user share."""
    if given := os.environ.get("MIZAN_CACHE_DIR"):
        return Path(given).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mizan"


def _messages(invalid: environs.EnvValidationError) -> Mapping[str, list[str]]:
    assert isinstance(invalid.error_messages, Mapping)
    return invalid.error_messages


def _find_service_problems() -> dict[str, list[str]]:
    """Return what is wrong with the given settings of the services. The stack sets those that are missing."""
    problems = read_environment().problems
    given = {name.removesuffix("_FILE") for name, value in os.environ.items() if value}
    return {name: texts for name, texts in problems.items() if name in given}


def _invalid_options(problems: Mapping[str, list[str]]) -> StackError:
    lines = [f"  {name}: {' '.join(texts)}" for name, texts in sorted(problems.items())]
    return StackError(
        "\n".join(["The stack cannot be started with these settings:", *lines]),
        "Correct them in the environment or on the command line, for example: make run PORT_BASE=9000",
    )


def _is_usable_path(value: str) -> None:
    if found := UNUSABLE_IN_PATHS.search(str(Path(value).expanduser().resolve())):
        raise environs.ValidationError(f"The path must not contain {found.group()!r}.")


def _is_postgres_url(value: str) -> None:
    if value and not value.startswith(("postgresql://", "postgres://")):
        raise environs.ValidationError("Must be a postgresql:// address.")


def _is_server_list(value: str) -> None:
    if value and not all(re.fullmatch(r"\S+:\d+", server) for server in value.split(",")):
        raise environs.ValidationError("Must be host:port, or several of them separated by commas.")
