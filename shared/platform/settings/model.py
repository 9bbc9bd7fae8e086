"""What settings are: frozen objects, read once. A room is given those that it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from shared.platform.logs import LogFormat


class Environment(StrEnum):
    DEVELOPMENT = "development"
    TEST = "test"
    PRODUCTION = "production"


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


RETRY_STEPS = 8


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
    notify_url: str | None = None
    """Where it reaches the checkout, if not at its public address."""


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
