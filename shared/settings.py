"""The one place that reads the environment: a frozen object, or a list of all that is wrong with it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, cast, get_args

import environs
from cryptography.fernet import Fernet
from environs import validate

from shared.logs import LogFormat
from shared.topics import RETRY_STEPS

KAFKA_CLIENT_PREFIX = "KAFKA_CLIENT_"
_STACK_KEYS = {
    "DATABASE_URL": "database_url",
    "KAFKA_BOOTSTRAP_SERVERS": "kafka_bootstrap_servers",
    "KAFKA_REPLICATION_FACTOR": "kafka_replication_factor",
    "MIZAN_SECRET_KEYS_FILE": "secret_keys_file",
    "WEBHOOK_ALLOW_PRIVATE": "webhook_allow_private",
    "SANDBOX_URL": "sandbox_url",
    "SANDBOX_SECRET_FILE": "sandbox_secret_file",
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
class PublicUrls:
    """Where people and merchants' servers reach us; never taken from a request. Without a slash at the end."""

    api: str
    checkout: str
    dashboard: str = "http://127.0.0.1:8003"
    monitor: str = "http://127.0.0.1:8004"


@dataclass(frozen=True, slots=True)
class ApiSettings:
    workers: int
    """Processes."""
    threads: int
    """In each process; each holds one database connection while it answers."""
    rate_limit: float
    """Requests a second for each application in each process, on average; 0 means no limit."""
    rate_burst: int
    """How many may come at one moment."""


@dataclass(frozen=True, slots=True)
class KeptSettings:
    """How long things are kept; docs/operations.md says what each means."""

    events_months: int = 24
    deliveries_months: int = 13
    sessions_days: int = 30
    codes_days: int = 7
    throttles_days: int = 1


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    retry_delays: tuple[float, ...] = (10, 60, 300, 1800, 3600, 10_800, 21_600, 43_200)
    """Seconds after each failed try but the last (§6.6)."""
    allow_private: bool = False
    """Development only: webhooks may go to private addresses and without TLS."""
    ca_file: Path | None = None
    """Certificates of authorities to trust besides the public ones."""
    in_flight: int = 1000
    """Requests at once in each lane of a process."""
    in_flight_per_application: int = 100


@dataclass(frozen=True, slots=True)
class CheckoutSettings:
    workers: int = 2
    """Processes."""
    threads: int = 128
    """In each process; one is taken while a provider is waited for, and others must not wait behind those."""
    provider_timeout_s: float = 10.0
    """How long a customer's request waits for a provider; after that, the provider is asked what became of it."""
    codes_per_phone: int = 10
    """How many one-time codes may be sent to one phone within an hour with nothing paid."""
    plutu_url: str = "https://api.plutus.ly/api/v1"


@dataclass(frozen=True, slots=True)
class MailSettings:
    """Invitations are mailed through this server; without one their links are only shown."""

    host: str
    port: int
    sender: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: str = "starttls"
    """starttls, implicit or none."""


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    workers: int = 2
    """Processes."""
    threads: int = 16
    """In each process."""
    mail: MailSettings | None = None
    trusted_proxies: int = 0
    """How many proxies of ours a request comes through: each adds an address to X-Forwarded-For."""


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """One process: what it has seen is in its memory."""

    workers: ClassVar[int] = 1
    threads: int = 16
    targets: Mapping[str, str] = field(default_factory=dict)
    """The services to look after: name → address, at which /readyz answers."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The stand-in for the bank and the wallets. Never in production."""

    url: str
    secret: str = field(repr=False)
    """What its notifications are signed with."""
    ledger: Path
    """A file of its own, where it keeps what it has charged."""
    silence_s: float = 60.0
    """For how long it says nothing, where it is to give no answer."""


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Where spans go. The other settings of opentelemetry are its own: OTEL_TRACES_SAMPLER and the like."""

    endpoint: str = field(repr=False)
    """The whole address that takes spans by OTLP, as protobuf over HTTP."""
    queue: int = 8192
    """How many spans may wait in a process; more are dropped."""


@dataclass(frozen=True, slots=True)
class Settings:
    environment: Environment
    database: DatabaseSettings
    kafka: KafkaSettings
    public_urls: PublicUrls
    api: ApiSettings
    kept: KeptSettings
    secret_keys: tuple[str, ...] = field(repr=False)
    """What stored secrets are encrypted with: the first encrypts, all decrypt."""
    webhooks: WebhookSettings
    checkout: CheckoutSettings
    dashboard: DashboardSettings
    monitor: MonitorSettings
    sandbox: SandboxSettings | None
    """None: there is none, and every method needs an account of its own."""
    http_host: str
    http_port: int
    log_format: LogFormat
    log_level: str
    metrics_dir: Path | None
    """Where the workers of one service share their metrics; None for a service of one process."""
    tracing: TracingSettings | None = None
    """None: nothing is traced."""


def read_settings() -> Settings:
    """Reads the environment. A setting NAME can also be given as a file's path in NAME_FILE."""
    env = environs.FileAwareEnv(eager=False)
    environment = env.enum("MIZAN_ENV", Environment.DEVELOPMENT, enum=Environment, by_value=True)
    settings = Settings(
        environment=environment,
        database=_database(env),
        kafka=_kafka(env),
        public_urls=PublicUrls(
            api=_public_url(env, "API_PUBLIC_URL", "http://127.0.0.1:8001"),
            checkout=_public_url(env, "CHECKOUT_PUBLIC_URL", "http://127.0.0.1:8002"),
            dashboard=_public_url(env, "DASHBOARD_PUBLIC_URL", "http://127.0.0.1:8003"),
            monitor=_public_url(env, "MONITOR_PUBLIC_URL", "http://127.0.0.1:8004"),
        ),
        api=_api(env),
        kept=_kept(env),
        secret_keys=_secret_keys(env),
        webhooks=_webhooks(env),
        checkout=_checkout(env),
        dashboard=_dashboard(env),
        monitor=_monitor(env),
        sandbox=_sandbox(env),
        http_host=env.str("HTTP_HOST", "127.0.0.1"),
        http_port=env.int("HTTP_PORT", 8000, validate=validate.Range(0, 65535)),
        log_format=cast(
            "LogFormat", env.str("MIZAN_LOG_FORMAT", "auto", validate=validate.OneOf(get_args(LogFormat)))
        ),
        log_level=env.str(
            "MIZAN_LOG_LEVEL", "INFO", validate=validate.OneOf(["DEBUG", "INFO", "WARNING", "ERROR"])
        ),
        metrics_dir=env.path("PROMETHEUS_MULTIPROC_DIR", None),
        tracing=_tracing(env),
    )
    try:
        env.seal()
    except environs.EnvValidationError as invalid:
        raise SettingsError(_problems(invalid)) from None
    _refuse_in_production(settings)
    return settings


def _refuse_in_production(settings: Settings) -> None:
    if settings.environment is not Environment.PRODUCTION:
        return
    only_in_development = {
        "WEBHOOK_ALLOW_PRIVATE": settings.webhooks.allow_private,
        "SANDBOX_SECRET": settings.sandbox is not None,
    }
    problems = {name: ["Is for development only."] for name, is_set in only_in_development.items() if is_set}
    if problems:
        raise SettingsError(problems)


def read_operator_settings() -> Settings:
    """For the command line: what the environment does not say is taken from a running stack's stack.json."""
    stack_file = Path(os.environ.get("STACK_DIR", ".run")) / "stack.json"
    if stack_file.exists():
        stack = json.loads(stack_file.read_text())
        for name, key in _STACK_KEYS.items():
            # Of NAME and NAME_FILE the file would win, also over what somebody has just set by hand.
            if stack.get(key) and name.removesuffix("_FILE") not in os.environ:
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


def _api(env: environs.FileAwareEnv) -> ApiSettings:
    return ApiSettings(
        workers=env.int("API_WORKERS", 2, validate=validate.Range(1, 256)),
        threads=env.int("API_THREADS", 8, validate=validate.Range(1, 256)),
        rate_limit=env.float("API_RATE_LIMIT", 0.0, validate=validate.Range(0, 1_000_000)),
        rate_burst=env.int("API_RATE_BURST", 100, validate=validate.Range(1, 1_000_000)),
    )


def _kept(env: environs.FileAwareEnv) -> KeptSettings:
    usual = KeptSettings()
    # A webhook is retried for days, and may begin on the last of a month.
    months = validate.Range(2, 1200)
    days = validate.Range(0, 3650)
    return KeptSettings(
        events_months=env.int("KEEP_EVENTS_MONTHS", usual.events_months, validate=months),
        deliveries_months=env.int("KEEP_DELIVERIES_MONTHS", usual.deliveries_months, validate=months),
        sessions_days=env.int("KEEP_SESSIONS_DAYS", usual.sessions_days, validate=days),
        codes_days=env.int("KEEP_CODES_DAYS", usual.codes_days, validate=days),
        throttles_days=env.int("KEEP_THROTTLES_DAYS", usual.throttles_days, validate=days),
    )


def _webhooks(env: environs.FileAwareEnv) -> WebhookSettings:
    usual = WebhookSettings()

    def is_a_ladder(delays: list[float]) -> None:
        if len(delays) != RETRY_STEPS or not all(0 <= delay <= 86_400 for delay in delays):
            raise environs.ValidationError(f"Must be {RETRY_STEPS} numbers of seconds, each up to a day.")

    def is_a_file(path: Path | None) -> None:
        if path is not None and not path.is_file():
            raise environs.ValidationError("There is no such file.")

    delays = env.list("WEBHOOK_RETRY_DELAYS", list(usual.retry_delays), subcast=float, validate=is_a_ladder)
    return WebhookSettings(
        retry_delays=tuple(delays or ()),
        allow_private=env.bool("WEBHOOK_ALLOW_PRIVATE", usual.allow_private),
        ca_file=env.path("WEBHOOK_CA_FILE", None, validate=is_a_file),
        in_flight=env.int("WEBHOOK_IN_FLIGHT", usual.in_flight, validate=validate.Range(1, 2000)),
        in_flight_per_application=env.int(
            "WEBHOOK_IN_FLIGHT_PER_APPLICATION",
            usual.in_flight_per_application,
            validate=validate.Range(1, 2000),
        ),
    )


def _checkout(env: environs.FileAwareEnv) -> CheckoutSettings:
    usual = CheckoutSettings()
    return CheckoutSettings(
        workers=env.int("CHECKOUT_WORKERS", usual.workers, validate=validate.Range(1, 256)),
        threads=env.int("CHECKOUT_THREADS", usual.threads, validate=validate.Range(1, 256)),
        provider_timeout_s=env.float(
            "PROVIDER_TIMEOUT", usual.provider_timeout_s, validate=validate.Range(0.1, 20)
        ),
        codes_per_phone=env.int(
            "CHECKOUT_CODES_PER_PHONE", usual.codes_per_phone, validate=validate.Range(1, 10_000)
        ),
        plutu_url=_public_url(env, "PLUTU_URL", usual.plutu_url),
    )


def _dashboard(env: environs.FileAwareEnv) -> DashboardSettings:
    usual = DashboardSettings()
    return DashboardSettings(
        workers=env.int("DASHBOARD_WORKERS", usual.workers, validate=validate.Range(1, 256)),
        threads=env.int("DASHBOARD_THREADS", usual.threads, validate=validate.Range(1, 256)),
        mail=_mail(env),
        trusted_proxies=env.int("TRUSTED_PROXIES", usual.trusted_proxies, validate=validate.Range(0, 10)),
    )


def _monitor(env: environs.FileAwareEnv) -> MonitorSettings:
    usual = MonitorSettings()

    def each_has_an_address(targets: list[str]) -> None:
        for target in targets:
            name, _, address = target.partition("=")
            if not name:
                raise environs.ValidationError("Must be name=address, comma-separated.")
            validate.URL(schemes={"http", "https"}, require_tld=False)(address)

    targets: list[str] = env.list("MONITOR_TARGETS", [], validate=each_has_an_address) or []
    addresses = (target.partition("=") for target in targets)
    return MonitorSettings(
        threads=env.int("MONITOR_THREADS", usual.threads, validate=validate.Range(1, 256)),
        targets=MappingProxyType({name: address.rstrip("/") for name, _, address in addresses}),
    )


def _mail(env: environs.FileAwareEnv) -> MailSettings | None:
    host = env.str("SMTP_HOST", "")
    port = env.int("SMTP_PORT", 587, validate=validate.Range(1, 65535))
    sender = env.str("SMTP_SENDER", "", validate=_is_empty_or_address)
    user = env.str("SMTP_USER", None)
    password = env.str("SMTP_PASSWORD", None)
    tls = env.str("SMTP_TLS", "starttls", validate=validate.OneOf(["starttls", "implicit", "none"]))
    if not host:
        return None
    return MailSettings(host, port, sender or f"mizan@{host}", user, password and password.strip(), tls)


def _is_empty_or_address(value: str) -> None:
    if value:
        validate.Email()(value)


def _sandbox(env: environs.FileAwareEnv) -> SandboxSettings | None:
    url = _public_url(env, "SANDBOX_URL", "http://127.0.0.1:8007")
    # A file of it may end with a line break; None until env.seal() tells what is wrong with it.
    secret = (env.str("SANDBOX_SECRET", "", validate=_is_empty_or_long) or "").strip()
    ledger = env.path("SANDBOX_LEDGER", Path("sandbox.sqlite"))
    silence_s = env.float("SANDBOX_SILENCE", 60.0, validate=validate.Range(0, 600))
    # Without a secret nobody could tell its notifications from anybody's.
    return SandboxSettings(url, secret, ledger, silence_s) if secret else None


def _is_empty_or_long(value: str) -> None:
    if value and len(value) < 16:
        raise environs.ValidationError("Must have at least 16 characters.")


def _tracing(env: environs.FileAwareEnv) -> TracingSettings | None:
    is_disabled = env.bool("OTEL_SDK_DISABLED", False)
    base = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", "", validate=_is_empty_or_http_url)
    of_traces = env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", validate=_is_empty_or_http_url)
    queue = env.int("OTEL_BSP_MAX_QUEUE_SIZE", 8192, validate=validate.Range(512, 1_000_000))
    endpoint = of_traces or (f"{base.rstrip('/')}/v1/traces" if base else None)
    return None if endpoint is None or is_disabled else TracingSettings(endpoint, queue)


def _is_empty_or_http_url(value: str) -> None:
    if value:
        validate.URL(schemes={"http", "https"}, require_tld=False)(value)


def _public_url(env: environs.FileAwareEnv, name: str, default: str) -> str:
    def is_address_to_build_on(value: str) -> None:
        validate.URL(schemes={"http", "https"}, require_tld=False)(value)
        if "?" in value or "#" in value:
            raise environs.ValidationError("Must have no query and no fragment.")

    # None until env.seal() tells what is wrong with it.
    return (env.str(name, default, validate=is_address_to_build_on) or "").rstrip("/")


def _secret_keys(env: environs.FileAwareEnv) -> tuple[str, ...]:
    def each_is_a_key(keys: list[str]) -> None:
        for key in keys:
            try:
                Fernet(key)
            except ValueError:
                # Not which one, nor what it says: this ends up in logs.
                raise environs.ValidationError("Each must be 32 random bytes in URL-safe base64.") from None

    return tuple(env.list("MIZAN_SECRET_KEYS", [], validate=each_is_a_key) or ())


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
