"""Production connects to other machines only with TLS, unless the operator names them in PLAINTEXT_HOSTS."""

import pytest

from shared.platform.production.settings_rules import find_setting_problems
from shared.platform.settings import SettingsError, read_environment, read_settings

PASSWORD = "dbQk3r7pXw91sZt"
REMOTE = "database.example.ly"
PRIMARY = "target_session_attrs=read-write"


def url(host: str = REMOTE, query: str = "") -> str:
    return f"postgresql://mizan:{PASSWORD}@{host}/mizan{query}"


DATABASES = [
    # the host and query of DATABASE_URL, and whether it is refused
    (REMOTE, "", True),  # libpq's default falls back to no encryption
    (REMOTE, "?sslmode=disable", True),
    (REMOTE, "?sslmode=allow", True),
    (REMOTE, "?sslmode=prefer", True),
    (REMOTE, "?sslmode=require", False),
    (REMOTE, "?sslmode=verify-ca", False),
    (REMOTE, "?sslmode=verify-full", False),
    (REMOTE, "?gssencmode=require", False),
    ("10.0.0.7", "", True),  # a private network is not this machine
    ("postgres:5432", "?sslmode=disable", True),
    ("localhost.example.ly", "", True),
    ("127.0.0.1,10.0.0.7", f"?{PRIMARY}", True),
    (f"{REMOTE},10.0.0.7:5433", f"?{PRIMARY}&sslmode=prefer", True),
    (f"{REMOTE},10.0.0.7:5433", f"?{PRIMARY}&sslmode=verify-full", False),
    ("127.0.0.1:5432,localhost:5433", f"?{PRIMARY}", False),
    ("localhost", "?hostaddr=10.0.0.7", True),
    ("", f"?host=/run/postgresql,{REMOTE}&{PRIMARY}", True),
    ("", "?service=payments", True),  # it may name any host
    ("", "?service=payments&sslmode=verify-full", False),
    ("", "", False),  # a Unix socket
    ("", "?host=/run/postgresql&sslmode=disable", False),
    ("localhost", "?sslmode=disable", False),
    ("127.0.0.1:5432", "", False),
    ("[::1]:5432", "", False),
    (REMOTE, "?hostaddr=127.0.0.1", False),  # a tunnel
]
KAFKAS = [
    # KAFKA_BOOTSTRAP_SERVERS, KAFKA_CLIENT_SECURITY_PROTOCOL, and whether they are refused
    ("kafka.example.ly:9092", None, True),
    ("kafka.example.ly:9092", "plaintext", True),
    ("kafka.example.ly:9092", "SASL_PLAINTEXT", True),
    ("kafka.example.ly:9093", "ssl", False),
    ("kafka.example.ly:9093", "SASL_SSL", False),
    ("127.0.0.1:9092,kafka-2:9092", None, True),
    ("PLAINTEXT://10.0.0.7:9092", None, True),
    ("[2001:db8::1]:9092", None, True),
    ("127.0.0.1:9092, localhost:9093,[::1]:9094", None, False),
    ("PLAINTEXT://localhost:9092", None, False),
]


@pytest.mark.parametrize(("host", "query", "is_refused"), DATABASES)
def test_postgresql_on_another_machine_needs_tls(
    good: pytest.MonkeyPatch, host: str, query: str, is_refused: bool
) -> None:
    good.setenv("DATABASE_URL", url(host, query))
    assert problems() == ({"DATABASE_URL"} if is_refused else set())


def test_environment_of_libpq_counts_where_the_url_says_nothing(good: pytest.MonkeyPatch) -> None:
    good.setenv("DATABASE_URL", url())
    good.setenv("PGSSLMODE", "verify-full")
    assert problems() == set()
    good.setenv("DATABASE_URL", url("", "?sslmode=disable"))
    assert problems() == set()
    good.setenv("PGHOST", REMOTE)
    assert problems() == {"DATABASE_URL"}


@pytest.mark.parametrize(("servers", "protocol", "is_refused"), KAFKAS)
def test_kafka_on_another_machine_needs_tls(
    good: pytest.MonkeyPatch, servers: str, protocol: str | None, is_refused: bool
) -> None:
    good.setenv("KAFKA_BOOTSTRAP_SERVERS", servers)
    if protocol is not None:
        good.setenv("KAFKA_CLIENT_SECURITY_PROTOCOL", protocol)
    assert problems() - {"KAFKA_CLIENT_SECURITY_PROTOCOL"} == (
        {"KAFKA_BOOTSTRAP_SERVERS"} if is_refused else set()
    )


def test_brokers_given_as_a_client_setting_count(good: pytest.MonkeyPatch) -> None:
    good.setenv("KAFKA_CLIENT_METADATA_BROKER_LIST", "kafka.example.ly:9092")
    assert problems() == {"KAFKA_BOOTSTRAP_SERVERS"}


@pytest.mark.parametrize(
    ("tls", "host", "has_password", "is_refused"),
    [
        ("none", "mail.example.ly", True, True),
        ("none", "mail.example.ly", False, False),
        ("none", "127.0.0.1", True, False),
        ("starttls", "mail.example.ly", True, False),
        ("implicit", "mail.example.ly", True, False),
    ],
)
def test_mail_password_is_sent_to_another_machine_only_with_tls(
    good: pytest.MonkeyPatch, tls: str, host: str, has_password: bool, is_refused: bool
) -> None:
    good.setenv("SMTP_TLS", tls)
    good.setenv("SMTP_HOST", host)
    if not has_password:
        good.delenv("SMTP_PASSWORD")
    assert problems() == ({"SMTP_TLS"} if is_refused else set())


@pytest.mark.parametrize(
    ("proxy", "is_refused"),
    [
        (f"http://mizan:{PASSWORD}@egress.example.ly:3128", True),
        (f"http://mizan:{PASSWORD}@10.0.0.7:3128", True),
        (f"https://mizan:{PASSWORD}@egress.example.ly:3128", False),
        # No password is sent, and the webhooks are encrypted up to the merchant.
        ("http://egress.example.ly:3128", False),
        (f"http://mizan:{PASSWORD}@127.0.0.1:3128", False),
        (f"http://mizan:{PASSWORD}@[::1]:3128", False),
        (f"http://mizan:{PASSWORD}@egress:3128", False),  # named in PLAINTEXT_HOSTS
        ("https://mizan:changeme@egress.example.ly:3128", True),  # easy to guess
    ],
)
def test_password_of_the_webhook_proxy_is_sent_to_another_machine_only_with_tls(
    good: pytest.MonkeyPatch, proxy: str, is_refused: bool
) -> None:
    good.setenv("PLAINTEXT_HOSTS", "egress")
    good.setenv("WEBHOOK_PROXY", proxy)
    assert problems() == ({"WEBHOOK_PROXY"} if is_refused else set())


def test_hosts_that_the_operator_names_need_no_tls(good: pytest.MonkeyPatch) -> None:
    """These and no others: all hosts of a list must be named."""
    good.setenv("DATABASE_URL", url("Postgres,10.0.0.7:5433", f"?{PRIMARY}"))
    good.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka:9092,[2001:db8::1]:9092")
    good.setenv("SMTP_TLS", "none")
    good.setenv("SMTP_HOST", "mail")
    good.setenv("PLAINTEXT_HOSTS", "postgres, kafka")
    assert problems() == {"DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS", "SMTP_TLS"}
    good.setenv("PLAINTEXT_HOSTS", "postgres, KAFKA,mail,10.0.0.7,2001:db8::1")
    assert problems() == set()
    good.setenv("DATABASE_URL", url("database,postgres", f"?{PRIMARY}"))
    assert problems() == {"DATABASE_URL"}


@pytest.mark.parametrize("value", ["kafka:9092", "*", "postgresql://db", "a b", ","])
def test_invalid_host_names_are_reported(good: pytest.MonkeyPatch, value: str) -> None:
    good.setenv("PLAINTEXT_HOSTS", value)
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert set(caught.value.problems) == {"PLAINTEXT_HOSTS"}


def problems() -> set[str]:
    """Return the settings that are refused. No text repeats a password."""
    found = find_setting_problems(read_environment().settings, "webhooks")
    assert PASSWORD not in str(found)
    return set(found)
