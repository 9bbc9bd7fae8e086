"""What keeps a process from starting: wrong settings, and in production settings that are only for development.

No text repeats a value, which may be a secret.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict

from shared.platform.outbound_url import WebhookUrlError, check_webhook_url
from shared.platform.production.demo_data import find_demo_data_at_start
from shared.platform.production.key_rules import find_key_problems, find_needless_keys
from shared.platform.production.known_secrets import is_known_password
from shared.platform.production.unencrypted_connections import (
    find_unencrypted_database,
    find_unencrypted_kafka,
    find_unencrypted_mail,
    find_unencrypted_proxy,
    find_unencrypted_url,
    is_authenticated,
)
from shared.platform.settings import (
    Environment,
    KafkaSettings,
    KeyPurpose,
    ParsedSettings,
    Problems,
    SandboxSettings,
    Settings,
)

_ANOTHER_PASSWORD = "This password is published or easy to guess: choose a random one."  # noqa: S105
# Other ways for a client to authenticate.
_INSTEAD_OF_PASSWORD = ("sslcert", "passfile", "service")
_SHORTEST_SANDBOX_SECRET = 32
_NEEDED_TO_CONNECT = {"DATABASE_URL", "DATABASE_CONNECT_TIMEOUT", "DATABASE_STATEMENT_TIMEOUT"}


def find_start_problems(parsed: ParsedSettings, process: str, *, needs_keys: bool = True) -> Problems:
    """Return all problems; empty means start. In production it also looks for demo data, if it can connect.

    `process` says which keys belong here (`shared.platform.keys.purposes`). Without `needs_keys` none may be missing.
    """
    settings = parsed.settings
    problems = {**find_setting_problems(settings, process, needs_keys=needs_keys), **parsed.problems}
    if settings.environment is Environment.PRODUCTION and not parsed.problems.keys() & _NEEDED_TO_CONNECT:
        found = find_demo_data_at_start(settings.database)
        if found:
            problems["demo data"] = [found]
    return problems


def find_development_settings(settings: Settings) -> Problems:
    """Return problems with settings that would let production store what it must not have."""
    if settings.environment is not Environment.PRODUCTION:
        return {}
    return _non_empty({"WEBHOOK_ALLOW_PRIVATE": _private_webhooks(settings)})


def find_command_problems(settings: Settings, purposes: Collection[KeyPurpose]) -> Problems:
    """Return what a command refuses in production: development settings, and keys of other purposes than these."""
    if settings.environment is not Environment.PRODUCTION:
        return {}
    needless = find_needless_keys(settings, purposes, "The command line")
    return {**find_development_settings(settings), **needless}


def find_setting_problems(settings: Settings, process: str, *, needs_keys: bool = True) -> Problems:
    """Return the problems of all settings in production. A setting that could not be parsed is skipped."""
    if settings.environment is not Environment.PRODUCTION:
        return {}
    urls = settings.public_urls
    mail = settings.dashboard.mail
    proxy = settings.webhooks.proxy
    return {
        **find_development_settings(settings),
        **find_key_problems(settings, process, needs_keys=needs_keys),
        **_sandbox(settings.sandbox, settings.plaintext_hosts),
        **_non_empty(
            {
                "DATABASE_URL": _database(settings.database.url, settings.plaintext_hosts),
                "KAFKA_BOOTSTRAP_SERVERS": find_unencrypted_kafka(settings.kafka, settings.plaintext_hosts),
                "SMTP_TLS": find_unencrypted_mail(mail, settings.plaintext_hosts),
                "WEBHOOK_PROXY": [
                    *find_unencrypted_proxy(proxy, settings.plaintext_hosts),
                    *_password(proxy.password if proxy else None),
                ],
                "API_RATE_LIMIT": _rate_limit(settings.api.rate_limit),
                "API_PUBLIC_URL": _public(urls.api, "merchants' servers"),
                "CHECKOUT_PUBLIC_URL": _public(urls.checkout, "customers"),
                "DASHBOARD_PUBLIC_URL": _public(urls.dashboard, "merchants' people"),
                "MONITOR_PUBLIC_URL": _private_or_encrypted(urls.monitor),
                "PLUTU_URL": _provider(settings.checkout.plutu_url),
                "SMTP_PASSWORD": _password(mail.password if mail else None),
                "KAFKA_CLIENT_SECURITY_PROTOCOL": _kafka_login(settings.kafka),
                "KAFKA_CLIENT_SASL_PASSWORD": _password(settings.kafka.client.get("sasl.password")),
            }
        ),
    }


def _non_empty(problems: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    listed = {name: list(texts) for name, texts in problems.items()}
    return {name: texts for name, texts in listed.items() if texts}


def _private_webhooks(settings: Settings) -> Iterator[str]:
    if settings.webhooks.allow_private:
        yield "Is for development only: merchants could make us call machines in our own network. Remove it."


def _sandbox(sandbox: SandboxSettings | None, plaintext_hosts: Collection[str]) -> Problems:
    """Whoever knows its secret can settle charges of test applications, and forge their notifications."""
    if sandbox is None:
        return {}
    addresses = {
        "SANDBOX_URL": sandbox.url,
        "SANDBOX_NOTIFY_URL": sandbox.notify_url,
        "SANDBOX_API_URL": sandbox.api_url,
    }
    unencrypted = {name: find_unencrypted_url(url, plaintext_hosts) for name, url in addresses.items() if url}
    return _non_empty({"SANDBOX_SECRET": _sandbox_secret(sandbox.secret), **unencrypted})


def _sandbox_secret(secret: str) -> Iterator[str]:
    if len(secret) < _SHORTEST_SANDBOX_SECRET or is_known_password(secret):
        yield (
            f"Is published or easy to guess: choose a random one of at least {_SHORTEST_SANDBOX_SECRET} characters."
        )


def _rate_limit(requests_per_second: float | None) -> Iterator[str]:
    if requests_per_second == 0:
        yield (
            "Is off: one merchant's faulty program could take the API from all others. Set how many requests per "
            "second one application may send to each process."
        )


def _database(url: str, plaintext_hosts: Collection[str]) -> Iterator[str]:
    if not url:
        return
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        yield "Cannot be parsed: percent-encode special characters in its user name and password."
        return
    yield from find_unencrypted_database(parts, plaintext_hosts)
    password = parts.get("password")
    if password:
        if is_known_password(password, parts.get("user", ""), parts.get("dbname", "")):
            yield _ANOTHER_PASSWORD
    elif not _is_by_socket(parts) and not any(parts.get(name) for name in _INSTEAD_OF_PASSWORD):
        yield (
            "Has no password, so anybody on that network may connect: give the role one, or set a certificate "
            "(sslcert) or a passfile. Only a Unix socket needs none, because PostgreSQL sees which account connects."
        )


def _kafka_login(kafka: KafkaSettings) -> Iterator[str]:
    if kafka.bootstrap_servers and not is_authenticated(kafka):
        yield (
            "Kafka would take us for anybody: log in as a user of its own for each service, with sasl_ssl (or "
            "sasl_plaintext to PLAINTEXT_HOSTS) and KAFKA_CLIENT_SASL_MECHANISM, _USERNAME and _PASSWORD. "
            "`mizan topics --passwords` creates these users."
        )


def _is_by_socket(parts: dict[str, str]) -> bool:
    hosts = parts.get("host", "").split(",")
    return "hostaddr" not in parts and all(not host or host[0] in "/@" for host in hosts)


def _public(url: str, who: str) -> Iterator[str]:
    if not url:
        return
    if not _is_encrypted(url):
        yield f"Must be an https:// address: {who} connect over the internet."
    try:
        _check_is_public(url)
    except WebhookUrlError as error:
        yield f"It {error.what}."


def _private_or_encrypted(url: str) -> Iterator[str]:
    """Operators may reach the monitor without https on the machine itself or in a private network."""
    if not url or _is_encrypted(url):
        return
    try:
        _check_is_public(url)
    except WebhookUrlError:
        return
    yield "Must be an https:// address, or one that is not public: operators send their passwords to it."


def _provider(url: str) -> Iterator[str]:
    if url and not _is_encrypted(url):
        yield "Must be an https:// address: payments are sent there with the merchants' credentials."


def _password(password: str | None) -> Iterator[str]:
    if password is not None and is_known_password(password):
        yield _ANOTHER_PASSWORD


def _is_encrypted(url: str) -> bool:
    return url.lower().startswith("https://")


def _check_is_public(url: str) -> None:
    """Check only the host: the scheme is checked separately."""
    check_webhook_url("https:" + url.partition(":")[2], allow_private=False)
