"""The one place that reads the environment: a frozen object, or a list of all that is wrong with it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import cast, get_args

import environs
from environs import validate

from shared.logs import LogFormat

KAFKA_CLIENT_PREFIX = "KAFKA_CLIENT_"
_STACK_KEYS = {
    "DATABASE_URL": "database_url",
    "KAFKA_BOOTSTRAP_SERVERS": "kafka_bootstrap_servers",
    "KAFKA_REPLICATION_FACTOR": "kafka_replication_factor",
}


class Environment(StrEnum):
    DEVELOPMENT = "development"
    TEST = "test"
    PRODUCTION = "production"


class SettingsError(Exception):
    """The environment cannot be used; lists every problem at once."""

    def __init__(self, problems: Mapping[str, list[str]]) -> None:
        self.problems = problems
        lines = [f"  {name}: {' '.join(texts)}" for name, texts in sorted(problems.items())]
        super().__init__("the environment has wrong or missing settings:\n" + "\n".join(lines))


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    url: str = field(repr=False)
    pool_size: int
    """Connections a process may hold."""
    connect_timeout_s: int
    pool_timeout_s: float
    """How long a caller waits for a free connection before it is told to come back later."""
    statement_timeout_s: int


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    bootstrap_servers: str
    topic_prefix: str
    """Put before topic and group names, so that several installations can share one cluster."""
    replication_factor: int
    client: Mapping[str, str] = field(repr=False)
    """librdkafka settings for every client: KAFKA_CLIENT_SASL_MECHANISM is sasl.mechanism."""


@dataclass(frozen=True, slots=True)
class Settings:
    environment: Environment
    database: DatabaseSettings
    kafka: KafkaSettings
    http_host: str
    http_port: int
    log_format: LogFormat
    log_level: str
    metrics_dir: Path | None
    """Where the workers of one gunicorn share their metrics; None for a service of one process."""


def read_settings() -> Settings:
    """Reads the environment. A setting NAME can also be given as a file's path in NAME_FILE."""
    env = environs.FileAwareEnv(eager=False)
    environment = env.enum("MIZAN_ENV", Environment.DEVELOPMENT, enum=Environment, by_value=True)
    settings = Settings(
        environment=environment,
        database=_database(env),
        kafka=_kafka(env),
        http_host=env.str("HTTP_HOST", "127.0.0.1"),
        http_port=env.int("HTTP_PORT", 8000, validate=validate.Range(0, 65535)),
        log_format=cast(
            "LogFormat", env.str("MIZAN_LOG_FORMAT", "auto", validate=validate.OneOf(get_args(LogFormat)))
        ),
        log_level=env.str(
            "MIZAN_LOG_LEVEL", "INFO", validate=validate.OneOf(["DEBUG", "INFO", "WARNING", "ERROR"])
        ),
        metrics_dir=env.path("PROMETHEUS_MULTIPROC_DIR", None),
    )
    try:
        env.seal()
    except environs.EnvValidationError as invalid:
        raise SettingsError(_problems(invalid)) from None
    return settings


def read_operator_settings() -> Settings:
    """For the command line: what the environment does not say is taken from a running stack's stack.json."""
    stack_file = Path(os.environ.get("STACK_DIR", ".run")) / "stack.json"
    if stack_file.exists():
        stack = json.loads(stack_file.read_text())
        for name, key in _STACK_KEYS.items():
            if stack.get(key):
                os.environ.setdefault(name, str(stack[key]))
    return read_settings()


def _database(env: environs.FileAwareEnv) -> DatabaseSettings:
    return DatabaseSettings(
        url=env.str("DATABASE_URL", validate=_is_postgres_url),
        pool_size=env.int("DATABASE_POOL_SIZE", 8, validate=validate.Range(1, 1000)),
        connect_timeout_s=env.int("DATABASE_CONNECT_TIMEOUT", 3, validate=validate.Range(1, 300)),
        pool_timeout_s=env.float("DATABASE_POOL_TIMEOUT", 2.0, validate=validate.Range(0.1, 300)),
        statement_timeout_s=env.int("DATABASE_STATEMENT_TIMEOUT", 15, validate=validate.Range(1, 3600)),
    )


def _kafka(env: environs.FileAwareEnv) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=env.str("KAFKA_BOOTSTRAP_SERVERS", validate=validate.Length(min=3)),
        topic_prefix=env.str("KAFKA_TOPIC_PREFIX", "", validate=validate.Regexp(r"^[A-Za-z0-9._-]{0,100}$")),
        replication_factor=env.int("KAFKA_REPLICATION_FACTOR", 1, validate=validate.Range(1, 9)),
        client=MappingProxyType(_kafka_client_settings(os.environ)),
    )


def _kafka_client_settings(environ: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(KAFKA_CLIENT_PREFIX).lower().replace("_", "."): value
        for name, value in environ.items()
        if name.startswith(KAFKA_CLIENT_PREFIX)
    }


def _is_postgres_url(value: str) -> None:
    if not value.startswith(("postgresql://", "postgres://")):
        raise environs.ValidationError("Must be a postgresql:// address.")


def _problems(invalid: environs.EnvValidationError) -> dict[str, list[str]]:
    messages = invalid.error_messages
    if not isinstance(messages, Mapping):
        return {"environment": [str(text) for text in messages]}
    return {name: [str(text) for text in texts] for name, texts in messages.items()}
