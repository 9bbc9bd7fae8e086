"""Reading the environment returns one frozen object, or reports every problem at once."""

from pathlib import Path

import pytest

from shared.platform.settings import (
    Environment,
    MailSettings,
    ProxySettings,
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


def test_only_the_addresses_of_postgresql_and_kafka_are_required() -> None:
    """Everything else has a default."""
    settings = read_settings()
    assert settings.environment is Environment.DEVELOPMENT
    assert settings.kafka.replication_factor == 1


def test_all_problems_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five mistakes must not need five starts to be found."""
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS")
    monkeypatch.setenv("DATABASE_URL", "mysql://x")
    monkeypatch.setenv("HTTP_PORT", "many")
    monkeypatch.setenv("MIZAN_ENV", "prod")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"KAFKA_BOOTSTRAP_SERVERS", "DATABASE_URL", "HTTP_PORT", "MIZAN_ENV"}
    assert "development, test, production" in str(caught.value)


def test_any_librdkafka_setting_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Managed Kafka needs SASL and TLS; we define none of these settings ourselves."""
    monkeypatch.setenv("KAFKA_CLIENT_SASL_MECHANISM", "SCRAM-SHA-512")
    monkeypatch.setenv("KAFKA_CLIENT_SECURITY_PROTOCOL", "SASL_SSL")
    assert read_settings().kafka.client == {
        "sasl.mechanism": "SCRAM-SHA-512",
        "security.protocol": "SASL_SSL",
    }


def test_a_librdkafka_setting_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment, which other processes may see, is no place for a password."""
    (tmp_path / "password").write_text("hush\n")
    monkeypatch.setenv("KAFKA_CLIENT_SASL_PASSWORD_FILE", str(tmp_path / "password"))
    assert read_settings().kafka.client == {"sasl.password": "hush"}


def test_a_setting_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As with container secrets."""
    monkeypatch.delenv("DATABASE_URL")
    (tmp_path / "url").write_text("postgresql://from/file")
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
    assert read_settings().database.url == "postgresql://from/file"


def test_line_break_at_the_end_of_a_file_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Editors and echo write one."""
    (tmp_path / "url").write_text("postgresql://from/file\n")
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
    assert read_settings().database.url == "postgresql://from/file"


def test_a_missing_file_is_reported_with_all_other_problems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also for a setting with a default, which must not be used instead."""
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SMTP_PASSWORD_FILE", str(tmp_path))
    monkeypatch.setenv("HTTP_PORT", "many")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"DATABASE_URL", "SMTP_PASSWORD", "HTTP_PORT"}
    assert "DATABASE_URL_FILE must be the path of a file" in str(caught.value)


def test_secrets_are_not_in_the_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings may end up in logs and tracebacks."""
    monkeypatch.setenv("KAFKA_CLIENT_SASL_PASSWORD", "also-hush")
    assert "hush" not in repr(read_settings())


@pytest.mark.parametrize(
    ("url", "is_refused"),
    [
        ("postgresql://mizan:a,b@db1,db2:5433/mizan", True),
        ("postgresql://mizan:hush@db1,db2/mizan?target_session_attrs=any", True),
        ("postgresql://mizan:hush@db1,db2?target_session_attrs=prefer-standby", True),
        ("postgresql:///mizan?host=db1,db2", True),
        ("postgresql://mizan@db1/mizan?hostaddr=10.0.0.1,10.0.0.2", True),
        ("postgresql://mizan:hush@db1,db2:5433/mizan?target_session_attrs=read-write&sslmode=require", False),
        ("postgresql:///mizan?host=db1,db2&target_session_attrs=primary", False),
        ("postgresql://mizan:a,b@db1/mizan?application_name=x,y", False),
        ("postgresql://mizan:hush@db1/a,b", False),
    ],
)
def test_database_with_several_hosts_is_only_used_at_its_primary(
    monkeypatch: pytest.MonkeyPatch, url: str, is_refused: bool
) -> None:
    """A session on a standby would read old rows, and could write none."""
    monkeypatch.setenv("DATABASE_URL", url)
    if not is_refused:
        assert read_settings().database.url == url
        return
    with pytest.raises(SettingsError, match="add target_session_attrs=read-write"):
        read_settings()


def test_retention_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting on its own; the others keep their defaults."""
    monkeypatch.setenv("KEEP_EVENTS_MONTHS", "2")
    monkeypatch.setenv("KEEP_SESSIONS_DAYS", "0")
    assert read_settings().retention == RetentionSettings(events_months=2, sessions_days=0)


def test_retention_outside_its_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least two months: a webhook that is still retried may have started in the month before."""
    monkeypatch.setenv("KEEP_EVENTS_MONTHS", "1")
    monkeypatch.setenv("KEEP_DELIVERIES_MONTHS", "1201")
    monkeypatch.setenv("KEEP_CODES_DAYS", "-1")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"KEEP_EVENTS_MONTHS", "KEEP_DELIVERIES_MONTHS", "KEEP_CODES_DAYS"}


def test_settings_cannot_be_changed() -> None:
    """They are frozen."""
    with pytest.raises(AttributeError):
        read_settings().http_port = 1  # type: ignore[misc]


def test_the_retry_delays_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight delays in seconds; the default is that of §6.6."""
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
        ("PROVIDER_TIMEOUT", "21"),  # longer than the in-flight window of a request
        ("PROVIDER_TIMEOUT", "0"),
        ("CHECKOUT_CODES_PER_PHONE", "0"),
        ("PLUTU_URL", "ftp://x"),
        ("DECISION_APPROVAL_ABOVE", "-1"),
        ("DECISION_APPROVAL_ABOVE", "1000000001"),  # no payment is as large
        ("DECISION_APPROVAL_ABOVE", "none"),
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
def test_invalid_value_is_reported_under_its_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {name}


class TestCheckout:
    def test_sandbox_is_off_without_a_secret(self) -> None:
        assert read_settings().sandbox is None

    def test_sandbox_settings_are_read(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("hush-hush-hush-hush\n")
        monkeypatch.setenv("SANDBOX_SECRET_FILE", str(tmp_path / "secret"))
        monkeypatch.setenv("SANDBOX_URL", "http://sandbox:8007/")
        sandbox = read_settings().sandbox
        assert sandbox is not None
        assert (sandbox.url, sandbox.secret) == ("http://sandbox:8007", "hush-hush-hush-hush")
        assert "hush" not in repr(sandbox)


class TestDashboard:
    def test_mail_is_off_without_a_mail_server(self) -> None:
        assert read_settings().dashboard.mail is None

    def test_mail_settings_are_read(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    def test_monitor_targets_are_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert read_settings().monitor.targets == {}
        monkeypatch.setenv("MONITOR_TARGETS", "api=http://api:8001/,checkout-verifier=http://10.0.0.7:8009")
        assert read_settings().monitor.targets == {
            "api": "http://api:8001",
            "checkout-verifier": "http://10.0.0.7:8009",
        }


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://10.0.0.7:3128", ProxySettings("10.0.0.7", 3128)),
        ("http://egress:3128/", ProxySettings("egress", 3128)),
        ("https://egress.example.ly:443", ProxySettings("egress.example.ly", 443, True)),
        ("http://[2001:db8::1]:3128", ProxySettings("2001:db8::1", 3128)),
        (
            "http://mizan:p%40ss%3Aw%2Frd@egress:3128",
            ProxySettings("egress", 3128, False, "mizan", "p@ss:w/rd"),
        ),
        ("http://mizan@egress:3128", ProxySettings("egress", 3128, False, "mizan", "")),
        ("", None),
    ],
)
def test_address_of_the_webhook_proxy_is_parsed(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: ProxySettings | None
) -> None:
    monkeypatch.setenv("WEBHOOK_PROXY", url)
    assert read_settings().webhooks.proxy == expected


@pytest.mark.parametrize(
    "url",
    [
        "egress:3128",
        "socks5://mizan:hush@egress:1080",
        "http://mizan:hush@egress",
        "http://mizan:hush@egress:0",
        "http://mizan:hush@egress:99999",
        "http://mizan:hush@egress:port",
        "http://mizan:hush@:3128",
        "http://mizan:hush@egress:3128/path",
        "http://mizan:hush@egress:3128?x=1",
        "http://mizan:hu#sh@egress:3128",
        "http://mizan:hu/sh@egress:3128",
        "http://mizan:hush%0d%0aX: y@egress:3128",
        "http://mi%3Azan:hush@egress:3128",
        "http://:hush@egress:3128",
        "http://mizan:hush@[::1:3128",
        "http://mizan:hush@[egress]:3128",
        "http://mizan:hush@e gress:3128",
        "http://mizan:hush@a@b,c:3128",
    ],
)
def test_address_of_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("WEBHOOK_PROXY", url)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"WEBHOOK_PROXY"}
    assert "hush" not in str(caught.value)


def test_password_of_the_webhook_proxy_is_not_in_the_printed_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WEBHOOK_PROXY", "http://mizan:very-secret@egress:3128")
    assert "very-secret" not in repr(read_settings())
