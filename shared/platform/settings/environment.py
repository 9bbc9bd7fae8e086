"""Reads all settings from the environment, and reports everything that is wrong with them at once."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import environs
from environs import validate

from shared.platform.logs import LogFormat
from shared.platform.settings import key_parsers, parsers
from shared.platform.settings.definitions import PROJECT, Environment, Settings

Problems = Mapping[str, list[str]]
"""What is wrong, by the name of the variable; never with a value that may be a secret."""

_STACK_KEYS = {
    "DATABASE_URL": "database_url",
    "KAFKA_BOOTSTRAP_SERVERS": "kafka_bootstrap_servers",
    "KAFKA_REPLICATION_FACTOR": "kafka_replication_factor",
    "MIZAN_SECRET_KEYS_FILE": "secret_keys_file",
    "MIZAN_WEBHOOK_SECRET_KEYS_FILE": "webhook_secret_keys_file",
    "MIZAN_PROVIDER_KEYS_FILE": "provider_keys_file",
    "MIZAN_CUSTOMER_KEYS_FILE": "customer_keys_file",
    **{name: name.lower() for name in key_parsers.TRANSIT_VARIABLES},
    "API_PUBLIC_URL": "api_public_url",
    "CHECKOUT_PUBLIC_URL": "checkout_public_url",
    "WEBHOOK_ALLOW_PRIVATE": "webhook_allow_private",
    "SANDBOX_URL": "sandbox_url",
    "SANDBOX_SECRET_FILE": "sandbox_secret_file",
}


class SettingsError(Exception):
    """Settings are wrong or missing; the text lists every problem."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        lines = [f"  {name}: {' '.join(texts)}" for name, texts in sorted(problems.items())]
        super().__init__("the environment has wrong or missing settings:\n" + "\n".join(lines))


@dataclass(frozen=True, slots=True)
class ParsedSettings:
    """Settings, and what is wrong with them. A setting named in `problems` may be None, whatever its type."""

    settings: Settings
    problems: Problems


def read_settings(*, uses_kafka: bool = True) -> Settings:
    """Read the environment; raises SettingsError when something is wrong with it."""
    parsed = read_environment(uses_kafka=uses_kafka)
    if parsed.problems:
        raise SettingsError(parsed.problems)
    return parsed.settings


def read_environment(*, uses_kafka: bool = True) -> ParsedSettings:
    """Read the environment. A variable NAME can also be given as the path of a file in NAME_FILE.

    A process that does not use Kafka needs no settings for it, and ignores those that there are.
    """
    # A secret's file may end with a line break, which would become part of a password or a name.
    default = parsers.defaults_of(Settings)
    env = _Environment(eager=False, strip_whitespace=True)
    settings = Settings(
        environment=env.enum("MIZAN_ENV", default.environment, enum=Environment, by_value=True),
        database=parsers.parse_database(env),
        kafka=parsers.parse_kafka(env, is_used=uses_kafka),
        public_urls=parsers.parse_public_urls(env),
        api=parsers.parse_api(env),
        retention=parsers.parse_retention(env),
        keys=key_parsers.parse_keys(env),
        secret_keys=key_parsers.parse_secret_keys(env),
        transit=key_parsers.parse_transit(env),
        webhooks=parsers.parse_webhooks(env),
        checkout=parsers.parse_checkout(env),
        dashboard=parsers.parse_dashboard(env),
        monitor=parsers.parse_monitor(env),
        sandbox=parsers.parse_sandbox(env),
        decision_approval_above=env.int(
            "DECISION_APPROVAL_ABOVE",
            default.decision_approval_above,
            validate=validate.Range(0, 1_000_000_000),
        ),
        http_host=env.str("HTTP_HOST", default.http_host),
        http_port=env.int("HTTP_PORT", default.http_port, validate=validate.Range(0, 65535)),
        trusted_proxies=env.int("TRUSTED_PROXIES", default.trusted_proxies, validate=validate.Range(0, 10)),
        plaintext_hosts=parsers.parse_plaintext_hosts(env),
        log_format=cast(
            "LogFormat",
            env.str("MIZAN_LOG_FORMAT", default.log_format, validate=validate.OneOf(get_args(LogFormat))),
        ),
        log_level=env.str(
            "MIZAN_LOG_LEVEL",
            default.log_level,
            validate=validate.OneOf(["DEBUG", "INFO", "WARNING", "ERROR"]),
        ),
        metrics_dir=env.path("PROMETHEUS_MULTIPROC_DIR", default.metrics_dir),
        documentation_dir=env.path("DOCUMENTATION_DIR", default.documentation_dir),
        tracing=parsers.parse_tracing(env),
    )
    try:
        env.seal()
    except environs.EnvValidationError as invalid:
        return ParsedSettings(settings, _problems(invalid))
    return ParsedSettings(settings, {})


def stack_directories() -> list[Path]:
    """Return where the command line looks for a running stack: STACK_DIR, or else .run here and beside the code."""
    given = os.environ.get("STACK_DIR")
    return [Path(given)] if given else [Path(".run").resolve(), PROJECT / ".run"]


def find_stack_file() -> Path | None:
    """Return the stack.json of a running stack, or None."""
    files = (directory / "stack.json" for directory in stack_directories())
    return next((file for file in files if file.exists()), None)


def read_operator_environment(
    *, uses_kafka: bool = True, as_kafka_admin: bool = False, as_owner: bool = False
) -> ParsedSettings:
    """Read the environment for the command line: what is missing there is taken from a running stack's stack.json.

    Commands connect to the stack's database with a role of their own; only migrations connect `as_owner`.
    `as_kafka_admin`: log in to the stack's Kafka as the admin, who may create topics, and not as the command line.
    """
    stack_file = find_stack_file()
    if stack_file is not None:
        stack = json.loads(stack_file.read_text())
        _take_kafka_login(stack, "kafka_client" if as_kafka_admin else "kafka_cli_client")
        if not as_owner:
            stack["database_url"] = stack.get("cli_database_url") or stack.get("database_url")
        for name, key in _STACK_KEYS.items():
            # NAME_FILE would win over NAME, also over a NAME that somebody has just set by hand.
            if stack.get(key) and name.removesuffix("_FILE") not in os.environ:
                os.environ.setdefault(name, str(stack[key]))
    return read_environment(uses_kafka=uses_kafka)


def _take_kafka_login(stack: Mapping[str, Any], key: str) -> None:
    """Take the login of a stack's Kafka, but never send it to another Kafka."""
    if os.environ.get("KAFKA_BOOTSTRAP_SERVERS", stack.get("kafka_bootstrap_servers")) != stack.get(
        "kafka_bootstrap_servers"
    ):
        return
    if any(name.startswith("KAFKA_CLIENT_SASL_") for name in os.environ):
        return
    for setting, value in stack.get(key, {}).items():
        os.environ[f"KAFKA_CLIENT_{setting.replace('.', '_').upper()}"] = str(value)


def read_admin_url(*, optional: bool = False) -> str:
    """Return DATABASE_ADMIN_URL, the connection of an administrator for `mizan roles`; empty if it is `optional`.

    Raises SettingsError. No service reads it.
    """
    env = _Environment(eager=False, strip_whitespace=True)
    url = parsers.parse_admin_url(env, optional=optional)
    try:
        env.seal()
    except environs.EnvValidationError as invalid:
        raise SettingsError(_problems(invalid)) from None
    return url


class _Environment(environs.FileAwareEnv):
    """Reports a file that cannot be read together with all other problems, instead of raising at once."""

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
