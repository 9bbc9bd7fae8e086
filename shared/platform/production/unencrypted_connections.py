"""Which connections of production would be unencrypted: to another machine with PostgreSQL, Kafka, mail, a proxy or the
sandbox.

Connections within this machine need no encryption: Unix sockets, and loopback addresses. Any other host is remote, also
one in a private network, unless the operator names it in PLAINTEXT_HOSTS. No text repeats a value.
"""

from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from psycopg.pq import Conninfo

from shared.platform.settings import KafkaSettings, MailSettings, ProxySettings

_OR_ALLOW = "If you trust the network to that host, name it in PLAINTEXT_HOSTS."
_ENCRYPTING_SSLMODES = {"require", "verify-ca", "verify-full"}
_ENCRYPTING_PROTOCOLS = {"ssl", "sasl_ssl"}
_OWN_CERTIFICATES = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location")
# librdkafka takes its first brokers from each of these.
_BROKER_LISTS = ("bootstrap.servers", "metadata.broker.list")


def find_unencrypted_database(
    url_parts: Mapping[str, str], plaintext_hosts: Collection[str]
) -> Iterator[str]:
    """Yield the problem, if there is one. What the URL leaves out is what libpq would take: PGSSLMODE and so on."""
    parts = {**_libpq_defaults(), **url_parts}
    is_encrypted = parts.get("sslmode") in _ENCRYPTING_SSLMODES or parts.get("gssencmode") == "require"
    if not is_encrypted and _are_remote(_database_hosts(parts), plaintext_hosts):
        yield (
            "Leads to another machine without TLS: passwords and payments could be read on the way. Add "
            f"sslmode=verify-full (and sslrootcert), or at least sslmode=require. {_OR_ALLOW}"
        )


def find_unencrypted_kafka(kafka: KafkaSettings, plaintext_hosts: Collection[str]) -> Iterator[str]:
    protocol = kafka.client.get("security.protocol", "plaintext").strip().lower()
    servers = [kafka.bootstrap_servers or "", *(kafka.client.get(name, "") for name in _BROKER_LISTS)]
    hosts = [_broker_host(server) for text in servers for server in text.split(",") if server.strip()]
    if protocol not in _ENCRYPTING_PROTOCOLS and _are_remote(hosts, plaintext_hosts):
        yield (
            "Leads to another machine without TLS: set KAFKA_CLIENT_SECURITY_PROTOCOL to ssl or sasl_ssl. "
            f"{_OR_ALLOW}"
        )


def is_authenticated(kafka: KafkaSettings) -> bool:
    """Tell whether clients prove who they are: by SASL, or by a certificate of their own."""
    protocol = kafka.client.get("security.protocol", "plaintext").strip().lower()
    if protocol.startswith("sasl_"):
        mechanism = kafka.client.get("sasl.mechanism") or kafka.client.get("sasl.mechanisms", "GSSAPI")
        needs_password = mechanism.upper() == "PLAIN" or mechanism.upper().startswith("SCRAM-")
        return not needs_password or bool(kafka.client.get("sasl.password"))
    return protocol == "ssl" and any(kafka.client.get(name) for name in _OWN_CERTIFICATES)


def find_unencrypted_mail(mail: MailSettings | None, plaintext_hosts: Collection[str]) -> Iterator[str]:
    """Only with a password: a server without one may be a relay in the own network that knows no TLS."""
    if mail is None or mail.tls != "none" or not mail.password:
        return
    if _are_remote([mail.host], plaintext_hosts):
        yield f"Would send SMTP_PASSWORD to another machine without TLS: use starttls or implicit. {_OR_ALLOW}"


def find_unencrypted_proxy(proxy: ProxySettings | None, plaintext_hosts: Collection[str]) -> Iterator[str]:
    """Only with a password: what is sent through the proxy is encrypted up to the merchant."""
    if proxy is None or proxy.tls or proxy.user is None:
        return
    if _are_remote([proxy.host], plaintext_hosts):
        yield f"Would send its password to another machine without TLS: use an https:// proxy. {_OR_ALLOW}"


def find_unencrypted_url(url: str, plaintext_hosts: Collection[str]) -> Iterator[str]:
    """Of the sandbox, or of a service that it calls: tokens and merchants' credentials are sent there."""
    parts = urlsplit(url)
    if parts.scheme != "https" and _are_remote([parts.hostname or ""], plaintext_hosts):
        yield f"Would send credentials to another machine without TLS: use an https:// address. {_OR_ALLOW}"


def _libpq_defaults() -> dict[str, str]:
    return {
        option.keyword.decode(): option.val.decode()
        for option in Conninfo.get_defaults()
        if option.val is not None
    }


def _database_hosts(parts: Mapping[str, str]) -> list[str]:
    """Return the hosts that libpq would connect to. An address in hostaddr wins over the name beside it."""
    names = parts["host"].split(",") if parts.get("host") else []
    addresses = parts["hostaddr"].split(",") if parts.get("hostaddr") else []
    if not names and not addresses:
        # The file of services may name any host.
        return ["service"] if parts.get("service") else [""]
    count = max(len(names), len(addresses))
    names, addresses = names or [""] * count, addresses or [""] * count
    return [address or name for name, address in zip(names, addresses, strict=False)]


def _broker_host(server: str) -> str:
    """Return the host of `host:port`, `[address]:port` or `protocol://host:port`."""
    text = server.strip().rpartition("://")[2]
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def _are_remote(hosts: Collection[str], plaintext_hosts: Collection[str]) -> bool:
    return any(not _is_on_this_machine(host) and host.lower() not in plaintext_hosts for host in hosts)


def _is_on_this_machine(host: str) -> bool:
    """Return whether it is a Unix socket (libpq also takes an empty host for one) or a loopback address."""
    if not host or host[0] in "/@" or host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
