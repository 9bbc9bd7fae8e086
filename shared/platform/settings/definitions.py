"""Every setting: its type, its meaning and its default. No default stands anywhere else.

Settings are frozen objects, read once at start. Each module is given only the group that it needs. docs/settings.md
lists the environment variables, `parsers` maps them to these fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

from shared.platform.logs import LogFormat

PROJECT = Path(__file__).resolve().parents[3]
RETRY_STEPS = 8
"""How many delays WEBHOOK_RETRY_DELAYS has (§6.6)."""


class Environment(StrEnum):
    DEVELOPMENT = "development"
    TEST = "test"
    PRODUCTION = "production"


class KeyPurpose(StrEnum):
    """What keys are for. No process has those of all purposes: `shared.platform.keys.purposes` says who has which."""

    WEBHOOK_SECRETS = "webhook_secrets"
    PROVIDER_CREDENTIALS = "provider_credentials"
    CUSTOMER_DATA = "customer_data"
    """Customers' phones, and the counters of the payment limits."""
    SESSIONS = "sessions"
    """Cookies, forms and sign-in counters of one service. Nothing that is stored is encrypted with them."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    url: str = field(repr=False)
    pool_size: int = 10
    """Connections a process may hold. The webhooks need two for each of four pipelines, and one for the clock."""
    connect_timeout_s: int = 3
    pool_timeout_s: float = 2.0
    """How long a caller waits for a free connection before it gets DatabaseUnavailableError."""
    statement_timeout_s: int = 15
    prepare_after: int | None = None
    """psycopg prepares a statement that a connection has run so often. None: never, as prepared_statements.py needs."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    bootstrap_servers: str
    """Empty in a process that does not use Kafka."""
    topic_prefix: str = ""
    """Put before topic and group names, so that several installations can share one cluster."""
    replication_factor: int = 1
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    """librdkafka settings for every client: KAFKA_CLIENT_SASL_MECHANISM is sasl.mechanism."""


@dataclass(frozen=True, slots=True)
class PublicUrls:
    """Where people and merchants' servers reach us; never taken from a request. Without a trailing slash."""

    api: str = "http://127.0.0.1:8001"
    checkout: str = "http://127.0.0.1:8002"
    dashboard: str = "http://127.0.0.1:8003"
    monitor: str = "http://127.0.0.1:8004"

    @property
    def api_base(self) -> str:
        """What the paths of the API reference follow."""
        return f"{self.api}/api/v1"


@dataclass(frozen=True, slots=True)
class ApiSettings:
    workers: int = 2
    """Processes."""
    threads: int = 8
    """In each process; each holds one database connection while it answers."""
    rate_limit: float = 100.0
    """Requests a second for each application in each process, on average; 0 means no limit."""
    rate_burst: int = 500
    """How many requests may come at one moment."""
    refusals_per_minute: int = 60
    """Requests with unknown credentials from one client address in each process; 0 means no limit."""


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """How long rows are kept; docs/operations/retention.md says what each means."""

    events_months: int = 24
    deliveries_months: int = 13
    sessions_days: int = 30
    codes_days: int = 7
    throttles_days: int = 1
    failed_sign_ins_days: int = 30


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """A forward proxy that is asked to CONNECT."""

    host: str
    """A name or an address; an IPv6 address without brackets."""
    port: int
    tls: bool = False
    """Whether the connection to the proxy itself is encrypted."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    retry_delays: tuple[float, ...] = (10, 60, 300, 1800, 3600, 10_800, 21_600, 43_200)
    """Seconds after each failed try but the last (§6.6)."""
    allow_private: bool = False
    """Development only: webhooks may go to private addresses and without TLS."""
    ca_file: Path | None = None
    """Certificates of authorities to trust in addition to the public ones."""
    proxy: ProxySettings | None = None
    """The egress proxy that all webhooks go through. None: they go straight to the merchants."""
    in_flight: int = 1000
    """Concurrent requests in each delivery pipeline of a process."""
    in_flight_per_application: int = 100


@dataclass(frozen=True, slots=True)
class CheckoutSettings:
    workers: int = 2
    """Processes."""
    threads: int = 128
    """In each process. A request that waits for a provider holds one, so there are many."""
    provider_timeout_s: float = 10.0
    """How long a customer's request waits for a provider. After that, a status inquiry finds out the result."""
    codes_per_phone: int = 10
    """How many one-time codes may be sent to one phone within an hour with nothing paid."""
    failures_per_address: int = 100
    """How many failed attempts, wrong codes and unused codes may come from one client address within an hour."""
    plutu_url: str = "https://api.plutus.ly/api/v1"


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The server that sends invitations. Without one, their links are shown to the owner who invites."""

    host: str
    port: int = 587
    sender: str = ""
    """Empty: mizan@ and the host."""
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


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """One process, because it keeps its observations in memory."""

    workers: ClassVar[int] = 1
    threads: int = 16
    targets: Mapping[str, str] = field(default_factory=dict)
    """The services to monitor: name → address, where /readyz answers."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The simulated bank and wallets, for payments of test applications."""

    url: str = "http://127.0.0.1:8007"
    secret: str = field(default="", repr=False)
    """Signs its notifications, and authenticates its clients. Empty: there is no sandbox."""
    ledger: Path = Path("sandbox.sqlite")
    """The file where it records its charges."""
    silence_s: float = 60.0
    """How long it waits when it is scripted to give no response."""
    notify_url: str | None = None
    """Where it reaches the checkout, if not at its public address."""
    api_url: str | None = None
    """Where it reaches the API, if not at its public address."""


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Where spans are sent. OpenTelemetry reads its other settings itself: OTEL_TRACES_SAMPLER and the like."""

    endpoint: str = field(repr=False)
    """The full address that receives spans by OTLP, as protobuf over HTTP."""
    queue: int = 8192
    """How many spans may wait in a process; more are dropped."""


@dataclass(frozen=True, slots=True)
class TransitSettings:
    """A KMS that speaks the Transit API of HashiCorp Vault. It has a key for each purpose of stored texts."""

    url: str
    """With https, unless it is on this machine. Without a trailing slash."""
    token_file: Path
    """Read anew for each call."""
    mount: str = "transit"
    key_prefix: str = "mizan-"
    """Its key for webhook secrets is called mizan-webhook-secrets."""
    namespace: str | None = None
    ca_file: Path | None = None
    """Certificates of the authorities to trust instead of the public ones."""
    timeout_s: float = 2.0
    """For a whole call."""
    start_s: float = 30.0
    """How long a process that starts waits for it."""
    cache_s: float = 3600.0
    """How long a data key stays in memory without being renewed."""
    cache_size: int = 1000
    """How many data keys of each purpose stay in memory."""
    encrypts: bool = True
    """Otherwise the KMS only decrypts, and the keys of the environment encrypt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    environment: Environment = Environment.DEVELOPMENT
    database: DatabaseSettings
    kafka: KafkaSettings
    public_urls: PublicUrls
    api: ApiSettings
    retention: RetentionSettings
    keys: Mapping[KeyPurpose, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The keys of each purpose: the first encrypts, all decrypt. A process has only those of its own purposes."""
    secret_keys: tuple[str, ...] = field(default=(), repr=False)
    """Keys for every purpose, after its own ones. In production they only decrypt, during an upgrade."""
    transit: TransitSettings | None = None
    """None: there is no KMS."""
    webhooks: WebhookSettings
    checkout: CheckoutSettings
    dashboard: DashboardSettings
    monitor: MonitorSettings
    sandbox: SandboxSettings | None
    """None: there is none, and every payment method needs a provider account."""
    decision_approval_above: int = 1_000_000
    """Operators' decisions about larger amounts, in minor units, need the approval of a second operator."""
    http_host: str = "127.0.0.1"
    http_port: int = 8000
    trusted_proxies: int = 0
    """How many of our own proxies a request passes: each adds an address to X-Forwarded-For."""
    plaintext_hosts: frozenset[str] = frozenset()
    """Other machines, by name or address, that production may connect to without TLS."""
    log_format: LogFormat = "auto"
    log_level: str = "INFO"
    metrics_dir: Path | None = None
    """Where the workers of one service share their metrics; None for a service of one process."""
    tracing: TracingSettings | None = None
    """None: nothing is traced."""
    documentation_dir: Path = PROJECT / ".site"
    """Where `make docs` put the documentation site."""
