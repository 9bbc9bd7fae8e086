"""Parses the environment variables of each group of settings, and validates them.

The defaults are those of `definitions`. What is wrong with a variable is reported by `env.seal()`, which the caller of
these functions calls last; until then a wrong setting may be None.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import environs
from environs import validate

from shared.platform.settings.definitions import (
    RETRY_STEPS,
    ApiSettings,
    CheckoutSettings,
    DashboardSettings,
    DatabaseSettings,
    KafkaSettings,
    MailSettings,
    MonitorSettings,
    PublicUrls,
    RetentionSettings,
    SandboxSettings,
    TracingSettings,
    WebhookSettings,
)
from shared.platform.settings.proxy_url import parse_proxy

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_KAFKA_CLIENT_PREFIX = "KAFKA_CLIENT_"
_HOST = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
"""A name or an IPv4 address, or an IPv6 address."""
_TO_THE_PRIMARY = {"read-write", "primary"}


def defaults_of(group: "type[DataclassInstance]") -> SimpleNamespace:
    """Return the defaults of a settings class, by field. A field without a default is left out."""
    plain = {field.name: field.default for field in fields(group) if field.default is not MISSING}
    made = {
        field.name: field.default_factory() for field in fields(group) if field.default_factory is not MISSING
    }
    return SimpleNamespace(**plain, **made)


def parse_database(env: environs.FileAwareEnv) -> DatabaseSettings:
    default = defaults_of(DatabaseSettings)
    return DatabaseSettings(
        url=env.str("DATABASE_URL", validate=_validate_postgres_url),
        pool_size=env.int("DATABASE_POOL_SIZE", default.pool_size, validate=validate.Range(1, 1000)),
        connect_timeout_s=env.int(
            "DATABASE_CONNECT_TIMEOUT", default.connect_timeout_s, validate=validate.Range(1, 300)
        ),
        pool_timeout_s=env.float(
            "DATABASE_POOL_TIMEOUT", default.pool_timeout_s, validate=validate.Range(0.1, 300)
        ),
        statement_timeout_s=env.int(
            "DATABASE_STATEMENT_TIMEOUT", default.statement_timeout_s, validate=validate.Range(1, 3600)
        ),
    )


def parse_admin_url(env: environs.FileAwareEnv, *, optional: bool) -> str:
    if optional and not env.str("DATABASE_ADMIN_URL", ""):
        return ""
    return env.str("DATABASE_ADMIN_URL", validate=_validate_postgres_url)


def parse_kafka(env: environs.FileAwareEnv, *, is_used: bool) -> KafkaSettings:
    """Return settings without a server if Kafka is not used: such a process takes no notice of the variables."""
    default = defaults_of(KafkaSettings)
    if not is_used:
        return KafkaSettings(bootstrap_servers="")
    return KafkaSettings(
        bootstrap_servers=env.str("KAFKA_BOOTSTRAP_SERVERS", validate=validate.Length(min=3)),
        topic_prefix=env.str(
            "KAFKA_TOPIC_PREFIX",
            default.topic_prefix,
            validate=validate.Regexp(r"^[A-Za-z0-9._-]{0,100}$"),
        ),
        replication_factor=env.int(
            "KAFKA_REPLICATION_FACTOR", default.replication_factor, validate=validate.Range(1, 9)
        ),
        client=MappingProxyType(_parse_kafka_client(env, os.environ)),
    )


def _parse_kafka_client(env: environs.FileAwareEnv, names: Iterable[str]) -> dict[str, str]:
    # No setting of librdkafka ends in .file.
    given = {name.removesuffix("_FILE") for name in names if name.startswith(_KAFKA_CLIENT_PREFIX)}
    return {
        name.removeprefix(_KAFKA_CLIENT_PREFIX).lower().replace("_", "."): env.str(name)
        for name in sorted(given)
    }


def parse_public_urls(env: environs.FileAwareEnv) -> PublicUrls:
    default = defaults_of(PublicUrls)
    return PublicUrls(
        api=_parse_base_url(env, "API_PUBLIC_URL", default.api),
        checkout=_parse_base_url(env, "CHECKOUT_PUBLIC_URL", default.checkout),
        dashboard=_parse_base_url(env, "DASHBOARD_PUBLIC_URL", default.dashboard),
        monitor=_parse_base_url(env, "MONITOR_PUBLIC_URL", default.monitor),
    )


def parse_api(env: environs.FileAwareEnv) -> ApiSettings:
    default = defaults_of(ApiSettings)
    return ApiSettings(
        workers=env.int("API_WORKERS", default.workers, validate=validate.Range(1, 256)),
        threads=env.int("API_THREADS", default.threads, validate=validate.Range(1, 256)),
        rate_limit=env.float("API_RATE_LIMIT", default.rate_limit, validate=validate.Range(0, 1_000_000)),
        rate_burst=env.int("API_RATE_BURST", default.rate_burst, validate=validate.Range(1, 1_000_000)),
        refusals_per_minute=env.int(
            "API_REFUSALS_PER_MINUTE", default.refusals_per_minute, validate=validate.Range(0, 1_000_000)
        ),
    )


def parse_retention(env: environs.FileAwareEnv) -> RetentionSettings:
    default = defaults_of(RetentionSettings)
    # Two months at least: a webhook is retried for days, and its retries may start on the last day of a month.
    months = validate.Range(2, 1200)
    days = validate.Range(0, 3650)
    return RetentionSettings(
        events_months=env.int("KEEP_EVENTS_MONTHS", default.events_months, validate=months),
        deliveries_months=env.int("KEEP_DELIVERIES_MONTHS", default.deliveries_months, validate=months),
        sessions_days=env.int("KEEP_SESSIONS_DAYS", default.sessions_days, validate=days),
        codes_days=env.int("KEEP_CODES_DAYS", default.codes_days, validate=days),
        throttles_days=env.int("KEEP_THROTTLES_DAYS", default.throttles_days, validate=days),
        failed_sign_ins_days=env.int(
            "KEEP_FAILED_SIGN_INS_DAYS", default.failed_sign_ins_days, validate=days
        ),
    )


def parse_webhooks(env: environs.FileAwareEnv) -> WebhookSettings:
    default = defaults_of(WebhookSettings)
    delays = env.list(
        "WEBHOOK_RETRY_DELAYS", list(default.retry_delays), subcast=float, validate=_validate_retry_delays
    )
    return WebhookSettings(
        retry_delays=tuple(delays or ()),
        allow_private=env.bool("WEBHOOK_ALLOW_PRIVATE", default.allow_private),
        ca_file=env.path("WEBHOOK_CA_FILE", default.ca_file, validate=_validate_file),
        proxy=parse_proxy(env, "WEBHOOK_PROXY"),
        in_flight=env.int("WEBHOOK_IN_FLIGHT", default.in_flight, validate=validate.Range(1, 2000)),
        in_flight_per_application=env.int(
            "WEBHOOK_IN_FLIGHT_PER_APPLICATION",
            default.in_flight_per_application,
            validate=validate.Range(1, 2000),
        ),
    )


def parse_checkout(env: environs.FileAwareEnv) -> CheckoutSettings:
    default = defaults_of(CheckoutSettings)
    return CheckoutSettings(
        workers=env.int("CHECKOUT_WORKERS", default.workers, validate=validate.Range(1, 256)),
        threads=env.int("CHECKOUT_THREADS", default.threads, validate=validate.Range(1, 256)),
        provider_timeout_s=env.float(
            "PROVIDER_TIMEOUT", default.provider_timeout_s, validate=validate.Range(0.1, 20)
        ),
        codes_per_phone=env.int(
            "CHECKOUT_CODES_PER_PHONE", default.codes_per_phone, validate=validate.Range(1, 10_000)
        ),
        failures_per_address=env.int(
            "CHECKOUT_FAILURES_PER_ADDRESS",
            default.failures_per_address,
            validate=validate.Range(1, 1_000_000),
        ),
        plutu_url=_parse_base_url(env, "PLUTU_URL", default.plutu_url),
    )


def parse_dashboard(env: environs.FileAwareEnv) -> DashboardSettings:
    default = defaults_of(DashboardSettings)
    return DashboardSettings(
        workers=env.int("DASHBOARD_WORKERS", default.workers, validate=validate.Range(1, 256)),
        threads=env.int("DASHBOARD_THREADS", default.threads, validate=validate.Range(1, 256)),
        mail=_parse_mail(env),
    )


def _parse_mail(env: environs.FileAwareEnv) -> MailSettings | None:
    """Return None without SMTP_HOST."""
    default = defaults_of(MailSettings)
    host = env.str("SMTP_HOST", "")
    port = env.int("SMTP_PORT", default.port, validate=validate.Range(1, 65535))
    sender = env.str("SMTP_SENDER", default.sender, validate=_validate_optional_email)
    user = env.str("SMTP_USER", default.user)
    password = env.str("SMTP_PASSWORD", default.password)
    tls = env.str("SMTP_TLS", default.tls, validate=validate.OneOf(["starttls", "implicit", "none"]))
    if not host:
        return None
    return MailSettings(host, port, sender or f"mizan@{host}", user, password and password.strip(), tls)


def parse_monitor(env: environs.FileAwareEnv) -> MonitorSettings:
    default = defaults_of(MonitorSettings)
    targets: list[str] = env.list("MONITOR_TARGETS", [], validate=_validate_targets) or []
    addresses = (target.partition("=") for target in targets)
    return MonitorSettings(
        threads=env.int("MONITOR_THREADS", default.threads, validate=validate.Range(1, 256)),
        targets=MappingProxyType({name: address.rstrip("/") for name, _, address in addresses}),
    )


def parse_sandbox(env: environs.FileAwareEnv) -> SandboxSettings | None:
    """Return None without a secret: nobody could be told from a stranger."""
    default = defaults_of(SandboxSettings)
    url = _parse_base_url(env, "SANDBOX_URL", default.url)
    # The file of a secret may end with a line break.
    secret = (env.str("SANDBOX_SECRET", default.secret, validate=_validate_optional_secret) or "").strip()
    ledger = env.path("SANDBOX_LEDGER", default.ledger)
    silence_s = env.float("SANDBOX_SILENCE", default.silence_s, validate=validate.Range(0, 600))
    notify_url = (env.str("SANDBOX_NOTIFY_URL", "", validate=_validate_optional_url) or "").rstrip("/")
    api_url = (env.str("SANDBOX_API_URL", "", validate=_validate_optional_url) or "").rstrip("/")
    if not secret:
        return None
    return SandboxSettings(url, secret, ledger, silence_s, notify_url or None, api_url or None)


def parse_tracing(env: environs.FileAwareEnv) -> TracingSettings | None:
    """Return None without an endpoint, or if OpenTelemetry is disabled."""
    default = defaults_of(TracingSettings)
    is_disabled = env.bool("OTEL_SDK_DISABLED", False)
    base = env.str("OTEL_EXPORTER_OTLP_ENDPOINT", "", validate=_validate_optional_url)
    of_traces = env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "", validate=_validate_optional_url)
    queue = env.int("OTEL_BSP_MAX_QUEUE_SIZE", default.queue, validate=validate.Range(512, 1_000_000))
    endpoint = of_traces or (f"{base.rstrip('/')}/v1/traces" if base else None)
    return None if endpoint is None or is_disabled else TracingSettings(endpoint, queue)


def parse_plaintext_hosts(env: environs.FileAwareEnv) -> frozenset[str]:
    hosts: list[str] = env.list("PLAINTEXT_HOSTS", [], validate=_validate_hosts) or []
    return frozenset(host.strip().lower() for host in hosts)


def _parse_base_url(env: environs.FileAwareEnv, name: str, default: str) -> str:
    return (env.str(name, default, validate=_validate_base_url) or "").rstrip("/")


def _validate_base_url(value: str) -> None:
    validate.URL(schemes={"http", "https"}, require_tld=False)(value)
    if "?" in value or "#" in value:
        raise environs.ValidationError("Must have no query and no fragment.")


def _validate_optional_url(value: str) -> None:
    if value:
        validate.URL(schemes={"http", "https"}, require_tld=False)(value)


def _validate_postgres_url(value: str) -> None:
    if not value.startswith(("postgresql://", "postgres://")):
        raise environs.ValidationError("Must be a postgresql:// address.")
    authority, _, path = value.partition("://")[2].partition("/")
    hosts, _, query = f"{authority.rpartition('@')[2]}/{path}".partition("?")
    given = parse_qs(query)
    named = [hosts.partition("/")[0], *given.get("host", []), *given.get("hostaddr", [])]
    session_attrs = given.get("target_session_attrs", [])
    if any("," in each for each in named) and not _TO_THE_PRIMARY & set(session_attrs):
        raise environs.ValidationError(
            "Names several hosts: add target_session_attrs=read-write, so that no session is on a standby."
        )


def _validate_optional_email(value: str) -> None:
    if value:
        validate.Email()(value)


def _validate_optional_secret(value: str) -> None:
    if value and len(value) < 16:
        raise environs.ValidationError("Must have at least 16 characters.")


def _validate_retry_delays(delays: list[float]) -> None:
    if len(delays) != RETRY_STEPS or not all(0 <= delay <= 86_400 for delay in delays):
        raise environs.ValidationError(f"Must be {RETRY_STEPS} numbers of seconds, each up to a day.")


def _validate_file(path: Path | None) -> None:
    if path is not None and not path.is_file():
        raise environs.ValidationError("There is no such file.")


def _validate_targets(targets: list[str]) -> None:
    for target in targets:
        name, _, address = target.partition("=")
        if not name:
            raise environs.ValidationError("Must be name=address, comma-separated.")
        validate.URL(schemes={"http", "https"}, require_tld=False)(address)


def _validate_hosts(hosts: list[str]) -> None:
    if not all(_HOST.fullmatch(host.strip()) for host in hosts):
        raise environs.ValidationError("Must be host names or addresses without ports, comma-separated.")
