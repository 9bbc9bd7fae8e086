"""Reads the settings, group by group. What is wrong with one is told by env.seal(), which whoever made `env` calls."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType

import environs
from cryptography.fernet import Fernet
from environs import validate

from shared.platform.settings.model import (
    RETRY_STEPS,
    ApiSettings,
    CheckoutSettings,
    DashboardSettings,
    DatabaseSettings,
    KafkaSettings,
    KeptSettings,
    MailSettings,
    MonitorSettings,
    SandboxSettings,
    TracingSettings,
    WebhookSettings,
)
from shared.platform.settings.shapes import (
    is_empty_or_address,
    is_empty_or_http_url,
    is_empty_or_long,
    is_postgres_url,
    public_url,
)

_KAFKA_CLIENT_PREFIX = "KAFKA_CLIENT_"


def database(env: environs.FileAwareEnv) -> DatabaseSettings:
    return DatabaseSettings(
        url=env.str("DATABASE_URL", validate=is_postgres_url),
        pool_size=env.int("DATABASE_POOL_SIZE", 8, validate=validate.Range(1, 1000)),
        connect_timeout_s=env.int("DATABASE_CONNECT_TIMEOUT", 3, validate=validate.Range(1, 300)),
        pool_timeout_s=env.float("DATABASE_POOL_TIMEOUT", 2.0, validate=validate.Range(0.1, 300)),
        statement_timeout_s=env.int("DATABASE_STATEMENT_TIMEOUT", 15, validate=validate.Range(1, 3600)),
    )


def kafka(env: environs.FileAwareEnv) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=env.str("KAFKA_BOOTSTRAP_SERVERS", validate=validate.Length(min=3)),
        topic_prefix=env.str("KAFKA_TOPIC_PREFIX", "", validate=validate.Regexp(r"^[A-Za-z0-9._-]{0,100}$")),
        replication_factor=env.int("KAFKA_REPLICATION_FACTOR", 1, validate=validate.Range(1, 9)),
        client=MappingProxyType(_kafka_client_settings(env, os.environ)),
    )


def _kafka_client_settings(env: environs.FileAwareEnv, names: Iterable[str]) -> dict[str, str]:
    # No setting of librdkafka ends in .file.
    given = {name.removesuffix("_FILE") for name in names if name.startswith(_KAFKA_CLIENT_PREFIX)}
    return {
        name.removeprefix(_KAFKA_CLIENT_PREFIX).lower().replace("_", "."): env.str(name)
        for name in sorted(given)
    }


def api(env: environs.FileAwareEnv) -> ApiSettings:
    return ApiSettings(
        workers=env.int("API_WORKERS", 2, validate=validate.Range(1, 256)),
        threads=env.int("API_THREADS", 8, validate=validate.Range(1, 256)),
        rate_limit=env.float("API_RATE_LIMIT", 0.0, validate=validate.Range(0, 1_000_000)),
        rate_burst=env.int("API_RATE_BURST", 100, validate=validate.Range(1, 1_000_000)),
    )


def kept(env: environs.FileAwareEnv) -> KeptSettings:
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


def webhooks(env: environs.FileAwareEnv) -> WebhookSettings:
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


def checkout(env: environs.FileAwareEnv) -> CheckoutSettings:
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
        plutu_url=public_url(env, "PLUTU_URL", usual.plutu_url),
    )


def dashboard(env: environs.FileAwareEnv) -> DashboardSettings:
    usual = DashboardSettings()
    return DashboardSettings(
        workers=env.int("DASHBOARD_WORKERS", usual.workers, validate=validate.Range(1, 256)),
        threads=env.int("DASHBOARD_THREADS", usual.threads, validate=validate.Range(1, 256)),
        mail=mail(env),
        trusted_proxies=env.int("TRUSTED_PROXIES", usual.trusted_proxies, validate=validate.Range(0, 10)),
    )


def mail(env: environs.FileAwareEnv) -> MailSettings | None:
    host = env.str("SMTP_HOST", "")
    port = env.int("SMTP_PORT", 587, validate=validate.Range(1, 65535))
    sender = env.str("SMTP_SENDER", "", validate=is_empty_or_address)
    user = env.str("SMTP_USER", None)
    password = env.str("SMTP_PASSWORD", None)
    tls = env.str("SMTP_TLS", "starttls", validate=validate.OneOf(["starttls", "implicit", "none"]))
    if not host:
        return None
    return MailSettings(host, port, sender or f"mizan@{host}", user, password and password.strip(), tls)


def monitor(env: environs.FileAwareEnv) -> MonitorSettings:
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


def sandbox(env: environs.FileAwareEnv) -> SandboxSettings | None:
    url = public_url(env, "SANDBOX_URL", "http://127.0.0.1:8007")
    # A file of it may end with a line break; None until env.seal() tells what is wrong with it.
    secret = (env.str("SANDBOX_SECRET", "", validate=is_empty_or_long) or "").strip()
    ledger = env.path("SANDBOX_LEDGER", Path("sandbox.sqlite"))
    silence_s = env.float("SANDBOX_SILENCE", 60.0, validate=validate.Range(0, 600))
    notify_url = (env.str("SANDBOX_NOTIFY_URL", "", validate=is_empty_or_http_url) or "").rstrip("/")
    # Without a secret nobody could tell its notifications from anybody's.
    return SandboxSettings(url, secret, ledger, silence_s, notify_url or None) if secret else None


def tracing(env: environs.FileAwareEnv) -> TracingSettings | None:
    is_disabled = env.bool("OTEL_SDK_DISABLED", False)
    base = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", "", validate=is_empty_or_http_url)
    of_traces = env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", validate=is_empty_or_http_url)
    queue = env.int("OTEL_BSP_MAX_QUEUE_SIZE", 8192, validate=validate.Range(512, 1_000_000))
    endpoint = of_traces or (f"{base.rstrip('/')}/v1/traces" if base else None)
    return None if endpoint is None or is_disabled else TracingSettings(endpoint, queue)


def secret_keys(env: environs.FileAwareEnv) -> tuple[str, ...]:
    def each_is_a_key(keys: list[str]) -> None:
        for key in keys:
            try:
                Fernet(key)
            except ValueError:
                # Not which one, nor what it says: this ends up in logs.
                raise environs.ValidationError("Each must be 32 random bytes in URL-safe base64.") from None

    return tuple(env.list("MIZAN_SECRET_KEYS", [], validate=each_is_a_key) or ())
