"""An environment that production accepts, with the keys of the webhook service."""

import secrets
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from cryptography.fernet import Fernet
from psycopg.conninfo import conninfo_to_dict

from shared.platform.settings import DatabaseSettings
from tests.engines import TestEngines
from tests.logs import restore_logging

GOOD = {
    "MIZAN_ENV": "production",
    "MIZAN_WEBHOOK_SECRET_KEYS": Fernet.generate_key().decode(),
    "DATABASE_URL": f"postgresql://mizan:{secrets.token_urlsafe(24)}@127.0.0.1:9/mizan",
    "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9",
    "KAFKA_REPLICATION_FACTOR": "3",
    "API_PUBLIC_URL": "https://api.mizan.example",
    "CHECKOUT_PUBLIC_URL": "https://pay.mizan.example",
    "DASHBOARD_PUBLIC_URL": "https://dashboard.mizan.example",
    "SMTP_HOST": "mail.mizan.example",
    "SMTP_PASSWORD": secrets.token_urlsafe(24),
    "API_RATE_LIMIT": "50",
    "KAFKA_CLIENT_SECURITY_PROTOCOL": "sasl_plaintext",
    "KAFKA_CLIENT_SASL_MECHANISM": "SCRAM-SHA-512",
    "KAFKA_CLIENT_SASL_USERNAME": "mizan-webhooks",
    "KAFKA_CLIENT_SASL_PASSWORD": secrets.token_urlsafe(24),
}


@pytest.fixture
def good(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Set a valid environment; the test changes single settings, and may start a service."""
    for name in (
        "MIZAN_SECRET_KEYS",
        "SANDBOX_SECRET",
        "SANDBOX_SECRET_FILE",
        "WEBHOOK_ALLOW_PRIVATE",
        "MONITOR_PUBLIC_URL",
        "PLUTU_URL",
        "PLAINTEXT_HOSTS",
        "PGSSLMODE",
        "PGHOST",
    ):
        monkeypatch.delenv(name, raising=False)
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STACK_DIR", "/nowhere")  # else a running `make run` of this project would be found
    with restore_logging():
        yield monkeypatch


@pytest.fixture
def strong_url(engines: TestEngines, database_settings: DatabaseSettings) -> Iterator[str]:
    """Return a URL of the test's database with a new role and a random password."""
    role, password = f"strong_{uuid4().hex[:8]}", secrets.token_hex(16)
    parts = conninfo_to_dict(database_settings.url)
    with psycopg.connect(engines.database_url, dbname="postgres", autocommit=True) as connection:
        connection.execute(f"create role {role} login superuser password '{password}'".encode())
        yield f"postgresql://{role}:{password}@{parts['host']}:{parts['port']}/{parts['dbname']}"
        connection.execute(f"drop role {role}".encode())
