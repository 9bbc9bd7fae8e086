"""Settings that production refuses: each one alone, and all in one list."""

import base64
import secrets

import pytest

from shared.platform.production.settings_rules import (
    find_development_settings,
    find_setting_problems,
    find_start_problems,
)
from shared.platform.settings import Problems, SettingsError, read_environment
from tests.shared.platform.production.conftest import GOOD

_PLAIN_KEY = base64.urlsafe_b64encode(bytes(32)).decode()
REFUSED = [
    # name, value, part of the message
    ("WEBHOOK_ALLOW_PRIVATE", "true", "development only"),
    ("SANDBOX_SECRET", "ieV3theequ4Ohcheequ5", "at least 32"),
    ("SANDBOX_SECRET", "change-me-in-production-change-me-in-production", "easy to guess"),
    ("SANDBOX_SECRET", "abab" * 10, "easy to guess"),
    ("MIZAN_WEBHOOK_SECRET_KEYS", "", "mizan keys new"),
    ("MIZAN_WEBHOOK_SECRET_KEYS", _PLAIN_KEY, "Key 1 of 1"),
    (
        "MIZAN_WEBHOOK_SECRET_KEYS",
        f"{GOOD['MIZAN_WEBHOOK_SECRET_KEYS']},{_PLAIN_KEY}",
        "Key 2 of 2",
    ),  # it still decrypts
    ("MIZAN_SECRET_KEYS", _PLAIN_KEY, "Key 1 of 1"),
    ("DATABASE_URL", "postgresql://mizan:mizan@db.internal/mizan?sslmode=require", "password"),
    (
        "DATABASE_URL",
        "postgresql://payments_of_ly:payments_of_ly@db.internal/mizan?sslmode=require",
        "password",
    ),
    ("DATABASE_URL", "postgresql://mizan:Password123@db.internal/mizan?sslmode=require", "password"),
    (
        "DATABASE_URL",
        "postgresql://db.internal/mizan?user=mizan&password=postgres&sslmode=require",
        "password",
    ),
    ("DATABASE_URL", "postgresql://mizan@db.internal/mizan?sslmode=require", "Has no password"),
    ("DATABASE_URL", "postgresql://mizan:@db.internal/mizan?sslmode=require", "Has no password"),
    ("DATABASE_URL", "postgresql://mizan@127.0.0.1/mizan", "Has no password"),
    (
        "DATABASE_URL",
        "postgresql:///mizan?host=/run/postgresql,db.internal&sslmode=require&target_session_attrs=read-write",
        "Has no password",
    ),
    ("DATABASE_URL", "postgresql://mizan:hu%sh@db.internal/mizan", "percent-encode"),
    ("API_PUBLIC_URL", "http://api.mizan.example", "https://"),
    ("CHECKOUT_PUBLIC_URL", "https://127.0.0.1:8002", "public address"),
    ("CHECKOUT_PUBLIC_URL", "https://[::1]", "public address"),
    ("CHECKOUT_PUBLIC_URL", "https://192.168.1.7", "public address"),
    ("CHECKOUT_PUBLIC_URL", "https://2130706433", "odd spelling"),
    ("DASHBOARD_PUBLIC_URL", "https://localhost", "local machine"),
    ("DASHBOARD_PUBLIC_URL", "https://dashboard", "local machine"),
    ("MONITOR_PUBLIC_URL", "http://monitor.mizan.example", "not public"),
    ("PLUTU_URL", "http://api.plutus.example/api/v1", "https://"),
    ("API_RATE_LIMIT", "0", "Is off"),
    ("SMTP_TLS", "none", "without TLS"),
    ("KAFKA_BOOTSTRAP_SERVERS", "kafka.internal:9092", "without TLS"),
    ("SMTP_PASSWORD", "changeme", "password"),
    ("KAFKA_CLIENT_SASL_PASSWORD", "kafka-secret", "password"),
]
ALLOWED = [
    ("DATABASE_URL", "postgresql:///mizan"),  # a socket with peer authentication
    ("DATABASE_URL", "postgresql://mizan@/mizan?host=/run/postgresql"),
    ("DATABASE_URL", "postgresql://mizan@db.internal/mizan?sslmode=verify-full&sslcert=/run/mizan.pem"),
    ("DATABASE_URL", "postgresql://mizan@db.internal/mizan?sslmode=require&passfile=/run/secrets/pgpass"),
    ("MONITOR_PUBLIC_URL", "http://127.0.0.1:8004"),
    ("MONITOR_PUBLIC_URL", "http://monitor.internal"),
    ("MONITOR_PUBLIC_URL", "http://10.0.0.7:8004"),
    ("MONITOR_PUBLIC_URL", "https://monitor.mizan.example"),
    ("SANDBOX_URL", "http://sandbox.internal:8007"),  # without a secret there is no sandbox
    ("KAFKA_CLIENT_SECURITY_PROTOCOL", "SASL_SSL"),
    ("KAFKA_CLIENT_SASL_MECHANISM", "OAUTHBEARER"),
    ("KAFKA_REPLICATION_FACTOR", "1"),  # logged as a warning
]


def _problems() -> Problems:
    reading = read_environment()
    assert reading.problems == {}
    return find_setting_problems(reading.settings, "webhooks")


@pytest.mark.usefixtures("good")
def test_valid_environment_has_no_problems() -> None:
    assert _problems() == {}


@pytest.mark.parametrize(
    ("name", "value", "word"), REFUSED, ids=[f"{name}: {word}" for name, _, word in REFUSED]
)
def test_each_bad_setting_is_refused(good: pytest.MonkeyPatch, name: str, value: str, word: str) -> None:
    """The message says what to do, and does not repeat the value."""
    good.setenv(name, value)
    problems = _problems()
    assert set(problems) == {name}
    (text,) = problems[name]
    assert word in text
    assert not value or value not in text


@pytest.mark.parametrize(("name", "value"), ALLOWED)
def test_intended_values_are_allowed(good: pytest.MonkeyPatch, name: str, value: str) -> None:
    good.setenv(name, value)
    assert _problems() == {}


def test_all_problems_are_reported_at_once(good: pytest.MonkeyPatch) -> None:
    """Also both problems of one setting; no secret is repeated."""
    for name, value, _ in REFUSED:
        good.setenv(name, value)
    for name in ("API_PUBLIC_URL", "CHECKOUT_PUBLIC_URL", "DASHBOARD_PUBLIC_URL"):
        good.delenv(name)
    problems = _problems()
    assert set(problems) == {name for name, _, _ in REFUSED}
    assert len(problems["API_PUBLIC_URL"]) == 2
    told = str(SettingsError(problems))
    assert not any(
        secret in told for secret in ("hu%sh", "changeme", "kafka-secret", _PLAIN_KEY, "ieV3theequ")
    )


def test_invalid_setting_hides_no_other_problem(good: pytest.MonkeyPatch) -> None:
    good.setenv("HTTP_PORT", "many")
    good.setenv("MIZAN_SECRET_KEYS", "no key")
    good.delenv("DATABASE_URL")
    good.setenv("API_PUBLIC_URL", "http://api.mizan.example")
    reading = read_environment()
    assert set(reading.problems) == {"HTTP_PORT", "MIZAN_SECRET_KEYS", "DATABASE_URL"}
    assert set({**find_setting_problems(reading.settings, "webhooks"), **reading.problems}) >= {
        "API_PUBLIC_URL",
        "HTTP_PORT",
    }


def test_invalid_database_url_is_reported_and_not_used(good: pytest.MonkeyPatch) -> None:
    good.setenv("DATABASE_URL", "postgresql://mizan:hu%sh@db.internal/mizan")
    assert set(find_start_problems(read_environment(), "webhooks")) == {"DATABASE_URL"}


@pytest.mark.parametrize("environment", ["development", "test"])
def test_outside_production_nothing_is_refused(good: pytest.MonkeyPatch, environment: str) -> None:
    for name, value, _ in REFUSED:
        good.setenv(name, value)
    good.setenv("MIZAN_ENV", environment)
    assert _problems() == {}


def test_command_line_refuses_only_settings_that_it_would_store(good: pytest.MonkeyPatch) -> None:
    """Operators repair everything else with the command line."""
    for name, value, _ in REFUSED:
        good.setenv(name, value)
    assert set(find_development_settings(read_environment().settings)) == {
        "WEBHOOK_ALLOW_PRIVATE",
    }


@pytest.mark.parametrize("name", ["SANDBOX_URL", "SANDBOX_NOTIFY_URL", "SANDBOX_API_URL"])
def test_sandbox_is_reached_by_tls_or_through_a_trusted_network(good: pytest.MonkeyPatch, name: str) -> None:
    good.setenv("SANDBOX_SECRET", secrets.token_urlsafe(32))
    for url in (
        "https://sandbox.internal",
        "HTTPS://sandbox.internal",
        "http://127.0.0.1:8007",
        "http://[::1]:8007",
    ):
        good.setenv(name, url)
        assert _problems() == {}, url
    good.setenv(name, "http://Sandbox.internal:8007/base")
    assert list(_problems()) == [name]
    assert "PLAINTEXT_HOSTS" in _problems()[name][0]
    good.setenv("PLAINTEXT_HOSTS", "sandbox")
    assert list(_problems()) == [name]
    good.setenv("PLAINTEXT_HOSTS", "sandbox.internal")
    assert _problems() == {}


@pytest.mark.parametrize("missing", ["KAFKA_CLIENT_SASL_PASSWORD", "KAFKA_CLIENT_SECURITY_PROTOCOL"])
def test_kafka_without_a_login_is_refused(good: pytest.MonkeyPatch, missing: str) -> None:
    """Also on this machine. A process that does not use Kafka needs none."""
    good.delenv(missing)
    assert list(_problems()) == ["KAFKA_CLIENT_SECURITY_PROTOCOL"]
    assert find_setting_problems(read_environment(uses_kafka=False).settings, "webhooks") == {}


def test_certificate_of_our_own_is_a_login(good: pytest.MonkeyPatch) -> None:
    good.setenv("KAFKA_CLIENT_SECURITY_PROTOCOL", "ssl")
    assert list(_problems()) == ["KAFKA_CLIENT_SECURITY_PROTOCOL"]
    good.setenv("KAFKA_CLIENT_SSL_CERTIFICATE_LOCATION", "/run/mizan.pem")
    assert _problems() == {}
