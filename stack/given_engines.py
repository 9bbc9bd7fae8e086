"""A database or a Kafka given from outside: is it there? Asked at the start, without telling secrets."""

import socket

import psycopg
from psycopg.conninfo import conninfo_to_dict

from stack.errors import StackError

CONNECT_SECONDS = 5


def check_given_database(url: str) -> None:
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
            connection.execute("select 1")
    except psycopg.Error as error:
        raise StackError(
            f"The database of DATABASE_URL ({_place(url)}) cannot be used: {_without_password(url, error)}",
            "Start that server or correct DATABASE_URL; without DATABASE_URL, PostgreSQL is embedded.",
        ) from None


def check_given_kafka(bootstrap_servers: str) -> None:
    """One reachable server is enough. How to sign in to it (SASL, TLS) is for the services to know."""
    reasons = []
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            reasons.append(f"{server}: {error}")
        else:
            return
    raise StackError(
        f"No server of KAFKA_BOOTSTRAP_SERVERS can be reached ({'; '.join(reasons)}).",
        "Start one or correct KAFKA_BOOTSTRAP_SERVERS; without it, Kafka is embedded.",
    )


def _parts(url: str) -> dict[str, str]:
    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        return {}


def _place(url: str) -> str:
    parts = _parts(url)
    return f"{parts.get('host', 'default host')}:{parts.get('port', '5432')}/{parts.get('dbname', '')}"


def _without_password(url: str, error: psycopg.Error) -> str:
    password = _parts(url).get("password")
    text = " ".join(str(error).split())
    # An address that cannot even be parsed is quoted in the message, password and all.
    if not password:
        return "the address cannot be read or the server refuses it" if "@" in text else text
    return text.replace(password, "***")
