"""Which settings are not for production, and what to do about each. Pure, and never repeats a value."""

from collections.abc import Iterator, Sequence

import psycopg
from psycopg.conninfo import conninfo_to_dict

from shared.platform.outbound_url import WebhookUrlError, check_webhook_url
from shared.platform.production.known_secrets import is_known_key, is_known_password
from shared.platform.settings import Environment, Problems, Settings

_HOW_TO_MAKE_A_KEY = "make one with `mizan keys new`"
_ANOTHER_PASSWORD = "Everybody knows this password, or would guess it: choose a random one."  # noqa: S105
# Other ways in which a client proves who it is.
_INSTEAD_OF_PASSWORD = ("sslcert", "passfile", "service")


def development_only(settings: Settings) -> Problems:
    """What would let something be stored that production must not have."""
    if settings.environment is not Environment.PRODUCTION:
        return {}
    return _kept({"WEBHOOK_ALLOW_PRIVATE": _private_webhooks(settings), "SANDBOX_SECRET": _sandbox(settings)})


def setting_problems(settings: Settings) -> Problems:
    """All of them, of all settings. A setting that could not even be read has none here."""
    if settings.environment is not Environment.PRODUCTION:
        return {}
    urls = settings.public_urls
    mail = settings.dashboard.mail
    return {
        **development_only(settings),
        **_kept(
            {
                "MIZAN_SECRET_KEYS": _secret_keys(settings.secret_keys),
                "DATABASE_URL": _database(settings.database.url),
                "API_PUBLIC_URL": _public(urls.api, "merchants' servers"),
                "CHECKOUT_PUBLIC_URL": _public(urls.checkout, "customers"),
                "DASHBOARD_PUBLIC_URL": _public(urls.dashboard, "merchants' people"),
                "MONITOR_PUBLIC_URL": _private_or_encrypted(urls.monitor),
                "PLUTU_URL": _provider(settings.checkout.plutu_url),
                "SMTP_PASSWORD": _password(mail.password if mail else None),
                "KAFKA_CLIENT_SASL_PASSWORD": _password(settings.kafka.client.get("sasl.password")),
            }
        ),
    }


def _kept(found: dict[str, Iterator[str]]) -> dict[str, list[str]]:
    listed = {name: list(texts) for name, texts in found.items()}
    return {name: texts for name, texts in listed.items() if texts}


def _private_webhooks(settings: Settings) -> Iterator[str]:
    if settings.webhooks.allow_private:
        yield "Is for development only: merchants could make us call machines of our own network. Take it out."


def _sandbox(settings: Settings) -> Iterator[str]:
    if settings.sandbox is not None:
        yield "Is for development only: whoever pays at the sandbox pays no money. Take it out."


def _secret_keys(keys: Sequence[str]) -> Iterator[str]:
    if not keys:
        yield f"Is missing, and with it what stored secrets are encrypted with: {_HOW_TO_MAKE_A_KEY}."
    known = [str(place) for place, key in enumerate(keys, 1) if is_known_key(key)]
    if known:
        yield (
            f"Key {' and '.join(known)} of {len(keys)} is published or plain: {_HOW_TO_MAKE_A_KEY}; if it was in use, "
            "put the new one before it, run `mizan keys reseal`, and take it out."
        )


def _database(url: str) -> Iterator[str]:
    if not url:
        return
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        yield "Cannot be read: percent-encode what is special in its user name and password."
        return
    password = parts.get("password")
    if password:
        if is_known_password(password, parts.get("user", ""), parts.get("dbname", "")):
            yield _ANOTHER_PASSWORD
    elif not _is_by_socket(parts) and not any(parts.get(name) for name in _INSTEAD_OF_PASSWORD):
        yield (
            "Has no password, so anybody on that network may come in: give the role one, or name a certificate "
            "(sslcert) or a passfile. Only a Unix socket needs none, where PostgreSQL sees which account asks."
        )


def _is_by_socket(parts: dict[str, str]) -> bool:
    hosts = parts.get("host", "").split(",")
    return "hostaddr" not in parts and all(not host or host[0] in "/@" for host in hosts)


def _public(url: str, who: str) -> Iterator[str]:
    if not url:
        return
    if not _is_encrypted(url):
        yield f"Must be an https:// address: {who} come over the internet."
    try:
        _check_is_public(url)
    except WebhookUrlError as error:
        yield f"It {error.what}."


def _private_or_encrypted(url: str) -> Iterator[str]:
    """The monitor is not public: operators may reach it on the machine itself or within a network of their own."""
    if not url or _is_encrypted(url):
        return
    try:
        _check_is_public(url)
    except WebhookUrlError:
        return
    yield "Must be an https:// address, or one that is not public: operators' passwords go there."


def _provider(url: str) -> Iterator[str]:
    if url and not _is_encrypted(url):
        yield "Must be an https:// address: money is moved there, with the merchants' credentials."


def _password(password: str | None) -> Iterator[str]:
    if password is not None and is_known_password(password):
        yield _ANOTHER_PASSWORD


def _is_encrypted(url: str) -> bool:
    return url.lower().startswith("https://")


def _check_is_public(url: str) -> None:
    """The host alone: which scheme it has is told apart."""
    check_webhook_url("https:" + url.partition(":")[2], allow_private=False)
