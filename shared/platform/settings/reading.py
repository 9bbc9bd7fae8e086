"""The environment, read: a frozen object, or a list of all that is wrong with it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import environs
from environs import validate

from shared.platform.logs import LogFormat
from shared.platform.settings import groups
from shared.platform.settings.model import Environment, PublicUrls, Settings
from shared.platform.settings.shapes import public_url

Problems = Mapping[str, list[str]]
"""What is wrong, by the name of the setting; never with a value that may be a secret."""

_STACK_KEYS = {
    "DATABASE_URL": "database_url",
    "KAFKA_BOOTSTRAP_SERVERS": "kafka_bootstrap_servers",
    "KAFKA_REPLICATION_FACTOR": "kafka_replication_factor",
    "MIZAN_SECRET_KEYS_FILE": "secret_keys_file",
    "WEBHOOK_ALLOW_PRIVATE": "webhook_allow_private",
    "SANDBOX_URL": "sandbox_url",
    "SANDBOX_SECRET_FILE": "sandbox_secret_file",
}


class SettingsError(Exception):
    """The environment cannot be used; lists every problem at once."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        lines = [f"  {name}: {' '.join(texts)}" for name, texts in sorted(problems.items())]
        super().__init__("the environment has wrong or missing settings:\n" + "\n".join(lines))


@dataclass(frozen=True, slots=True)
class Reading:
    """A setting that is named in `problems` may be None here, whatever its type."""

    settings: Settings
    problems: Problems


def read_settings() -> Settings:
    reading = read_environment()
    if reading.problems:
        raise SettingsError(reading.problems)
    return reading.settings


def read_environment() -> Reading:
    """Reads the environment. A setting NAME can also be given as a file's path in NAME_FILE."""
    # A secret's file may end with a line break, which would become part of a password or a name.
    env = _Environment(eager=False, strip_whitespace=True)
    settings = Settings(
        environment=env.enum("MIZAN_ENV", Environment.DEVELOPMENT, enum=Environment, by_value=True),
        database=groups.database(env),
        kafka=groups.kafka(env),
        public_urls=PublicUrls(
            api=public_url(env, "API_PUBLIC_URL", "http://127.0.0.1:8001"),
            checkout=public_url(env, "CHECKOUT_PUBLIC_URL", "http://127.0.0.1:8002"),
            dashboard=public_url(env, "DASHBOARD_PUBLIC_URL", "http://127.0.0.1:8003"),
            monitor=public_url(env, "MONITOR_PUBLIC_URL", "http://127.0.0.1:8004"),
        ),
        api=groups.api(env),
        kept=groups.kept(env),
        secret_keys=groups.secret_keys(env),
        webhooks=groups.webhooks(env),
        checkout=groups.checkout(env),
        dashboard=groups.dashboard(env),
        monitor=groups.monitor(env),
        sandbox=groups.sandbox(env),
        http_host=env.str("HTTP_HOST", "127.0.0.1"),
        http_port=env.int("HTTP_PORT", 8000, validate=validate.Range(0, 65535)),
        log_format=cast(
            "LogFormat", env.str("MIZAN_LOG_FORMAT", "auto", validate=validate.OneOf(get_args(LogFormat)))
        ),
        log_level=env.str(
            "MIZAN_LOG_LEVEL", "INFO", validate=validate.OneOf(["DEBUG", "INFO", "WARNING", "ERROR"])
        ),
        metrics_dir=env.path("PROMETHEUS_MULTIPROC_DIR", None),
        tracing=groups.tracing(env),
    )
    try:
        env.seal()
    except environs.EnvValidationError as invalid:
        return Reading(settings, _problems(invalid))
    return Reading(settings, {})


def read_operator_environment() -> Reading:
    """For the command line: what the environment does not say is taken from a running stack's stack.json."""
    stack_file = Path(os.environ.get("STACK_DIR", ".run")) / "stack.json"
    if stack_file.exists():
        stack = json.loads(stack_file.read_text())
        for name, key in _STACK_KEYS.items():
            # Of NAME and NAME_FILE the file would win, also over what somebody has just set by hand.
            if stack.get(key) and name.removesuffix("_FILE") not in os.environ:
                os.environ.setdefault(name, str(stack[key]))
    return read_environment()


class _Environment(environs.FileAwareEnv):
    """One that tells of a file that cannot be read as of any other problem: with all the others."""

    def _get_value(self, env_key: str, default: Any) -> Any:
        try:
            return super()._get_value(env_key, default)
        except ValueError:
            self._errors[env_key].append(f"{env_key}_FILE must be the path of a file that can be read.")
            return default


def _problems(invalid: environs.EnvValidationError) -> Problems:
    messages = invalid.error_messages
    if not isinstance(messages, Mapping):
        return {"environment": [str(text) for text in messages]}
    return {name: [str(text) for text in texts] for name, texts in messages.items()}
