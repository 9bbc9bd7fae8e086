"""Reading the environment: one frozen object, or every problem at once."""

from pathlib import Path

import pytest

from shared.platform.settings import (
    Environment,
    MailSettings,
    RetentionSettings,
    SettingsError,
    read_settings,
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MIZAN_ENV", "HTTP_PORT", "KAFKA_TOPIC_PREFIX", "KAFKA_REPLICATION_FACTOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://mizan:hush@127.0.0.1/mizan")
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")


def test_two_addresses_are_enough() -> None:
    """Everything else has a default."""
    settings = read_settings()
    assert settings.environment is Environment.DEVELOPMENT
    assert settings.kafka.replication_factor == 1


def test_all_problems_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody should have to start five times to find five mistakes."""
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS")
    monkeypatch.setenv("DATABASE_URL", "mysql://x")
    monkeypatch.setenv("HTTP_PORT", "many")
    monkeypatch.setenv("MIZAN_ENV", "prod")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL", "HTTP_PORT", "MIZAN_ENV"}
    assert "development, test, production" in str(caught.value)


def test_any_librdkafka_setting_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Managed Kafka needs SASL and TLS; we name none of its settings ourselves."""
    monkeypatch.setenv("KAFKA_CLIENT_SASL_MECHANISM", "SCRAM-SHA-512")
    monkeypatch.setenv("KAFKA_CLIENT_SECURITY_PROTOCOL", "SASL_SSL")
    assert read_settings().kafka.client == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "security.protocol": "SASL_SSL",
    }


def test_a_librdkafka_setting_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A password does not belong in the environment, where many can see it."""
    (tmp_path / "password").write_text("hush\n")
    monkeypatch.setenv("KAFKA_CLIENT_SASL_PASSWORD_FILE", str(tmp_path / "password"))
    assert read_settings().kafka.client == {"sasl.password": "hush"}


def test_a_setting_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As container secrets are given."""
    monkeypatch.delenv("DATABASE_URL")
    (tmp_path / "url").write_text("postgresql://from/file")
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
    assert read_settings().database.url == "postgresql://from/file"


def test_a_file_ends_with_a_line_break(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As editors and echo write it; it is not part of the setting."""
    (tmp_path / "url").write_text("postgresql://from/file\n")
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
    assert read_settings().database.url == "postgresql://from/file"


def test_a_missing_file_is_reported_with_all_other_problems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also for a setting that has a default, which must not be taken instead."""
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SMTP_PASSWORD_FILE", str(tmp_path))
    monkeypatch.setenv("HTTP_PORT", "many")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"DATABASE_URL", "SMTP_PASSWORD", "HTTP_PORT"}
    assert "DATABASE_URL_FILE must be the path of a file" in str(caught.value)


def test_secrets_do_not_show_when_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings end up in logs and tracebacks sooner or later."""
    monkeypatch.setenv("KAFKA_CLIENT_SASL_PASSWORD", "also-hush")
    assert "hush" not in repr(read_settings())


def test_retention_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each on its own; the others keep their defaults."""
    monkeypatch.setenv("KEEP_EVENTS_MONTHS", "2")
    monkeypatch.setenv("KEEP_SESSIONS_DAYS", "0")
    assert read_settings().retention == RetentionSettings(events_months=2, sessions_days=0)


def test_retention_is_at_least_two_months(monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook that is still retried may have started in the month before."""
    monkeypatch.setenv("KEEP_EVENTS_MONTHS", "1")
    monkeypatch.setenv("KEEP_DELIVERIES_MONTHS", "1201")
    monkeypatch.setenv("KEEP_CODES_DAYS", "-1")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"KEEP_EVENTS_MONTHS", "KEEP_DELIVERIES_MONTHS", "KEEP_CODES_DAYS"}


def test_settings_cannot_be_changed() -> None:
    """Read once, frozen."""
    with pytest.raises(AttributeError):
        read_settings().http_port = 1  # type: ignore[misc]


def test_the_retry_delays_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight numbers of seconds; without it, those of §6.6."""
    assert read_settings().webhooks.retry_delays == (10, 60, 300, 1800, 3600, 10_800, 21_600, 43_200)
    monkeypatch.setenv("WEBHOOK_RETRY_DELAYS", "1,1.5,2,2,2,2,2,3")
    assert read_settings().webhooks.retry_delays == (1, 1.5, 2, 2, 2, 2, 2, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEBHOOK_RETRY_DELAYS", "1,2,3"),
        ("WEBHOOK_RETRY_DELAYS", "1,2,3,4,5,6,7,soon"),
        ("WEBHOOK_RETRY_DELAYS", "1,2,3,4,5,6,7,-8"),
        ("WEBHOOK_RETRY_DELAYS", "1,2,3,4,5,6,7,86401"),
        ("WEBHOOK_CA_FILE", "/no/such/file.pem"),
        ("WEBHOOK_IN_FLIGHT", "0"),
        ("WEBHOOK_IN_FLIGHT_PER_APPLICATION", "2001"),
        ("SANDBOX_SECRET", "short"),
        ("PROVIDER_TIMEOUT", "21"),  # longer than others take a request for lost
        ("PROVIDER_TIMEOUT", "0"),
        ("CHECKOUT_CODES_PER_PHONE", "0"),
        ("PLUTU_URL", "ftp://x"),
        ("SMTP_PORT", "0"),
        ("SMTP_TLS", "perhaps"),
        ("SMTP_SENDER", "nobody"),
        ("DASHBOARD_WORKERS", "0"),
        ("DASHBOARD_THREADS", "many"),
        ("DASHBOARD_PUBLIC_URL", "dashboard.example"),
        ("TRUSTED_PROXIES", "-1"),
        ("MONITOR_TARGETS", "api"),
        ("MONITOR_TARGETS", "=http://api"),
        ("MONITOR_TARGETS", "api="),
        ("MONITOR_TARGETS", "api=ftp://api"),
        ("MONITOR_TARGETS", "api=file:///etc/passwd"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {name}


class TestCheckout:
    def test_without_a_secret_there_is_no_sandbox(self) -> None:
        assert read_settings().sandbox is None

    def test_the_sandbox(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("hush-hush-hush-hush\n")
        monkeypatch.setenv("SANDBOX_SECRET_FILE", str(tmp_path / "secret"))
        monkeypatch.setenv("SANDBOX_URL", "http://sandbox:8007/")
        sandbox = read_settings().sandbox
        assert sandbox is not None
        assert (sandbox.url, sandbox.secret) == ("http://sandbox:8007", "hush-hush-hush-hush")
        assert "hush" not in repr(sandbox)


class TestDashboard:
    def test_without_a_mail_server_nothing_is_mailed(self) -> None:
        assert read_settings().dashboard.mail is None

    def test_the_mail_server(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "password").write_text("hush\n")
        monkeypatch.setenv("SMTP_HOST", "mail.example.ly")
        monkeypatch.setenv("SMTP_USER", "mizan")
        monkeypatch.setenv("SMTP_PASSWORD_FILE", str(tmp_path / "password"))
        settings = read_settings()
        mail = settings.dashboard.mail
        assert mail == MailSettings(
            "mail.example.ly", 587, "mizan@mail.example.ly", "mizan", "hush", "starttls"
        )
        assert "hush" not in repr(settings)


class TestMonitor:
    def test_the_services_to_monitor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert read_settings().monitor.targets == {}
        monkeypatch.setenv("MONITOR_TARGETS", "api=http://api:8001/,checkout-verifier=http://10.0.0.7:8009")
        assert read_settings().monitor.targets == {
            "api": "http://api:8001",
            "checkout-verifier": "http://10.0.0.7:8009",
        }
