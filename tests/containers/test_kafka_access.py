"""In the compose files each service logs in to Kafka as its own principal, or does not learn where Kafka is."""

import runpy
from pathlib import Path

import pytest

from shared.domain.kafka_principals import ADMIN, ALL_PRINCIPALS, CLI
from shared.platform.kafka.access import password_file
from stack.broker import BROKER_PRINCIPAL
from stack.services import JOBS, SERVICES, SHOP
from tests.containers.compose_files import DEVELOPMENT, PRODUCTION, PROJECT, environment, services

PRINCIPALS = {
    **{service.name: service.kafka_principal for service in (*SERVICES, SHOP)},
    **{job.name: job.kafka_principal for job in JOBS},
    **{f"{service.name}-2": service.kafka_principal for service in SERVICES if service.in_production},
    "cli": CLI.name,
    "demo": None,
}
PRINCIPALS.pop("monitor-2")


@pytest.mark.parametrize(
    ("paths", "directory"),
    [((DEVELOPMENT,), "/var/lib/mizan/secrets"), ((DEVELOPMENT, PRODUCTION), "/run/secrets")],
    ids=["development", "production"],
)
def test_each_service_has_its_own_login(paths: tuple[Path, ...], directory: str) -> None:
    for name, principal in PRINCIPALS.items():
        if PRODUCTION in paths and services(PRODUCTION).get(name, {}).get("profiles") == ["never"]:
            continue
        given = environment(name, {}, *paths)
        kafka = {key: value for key, value in given.items() if key.startswith("KAFKA_")}
        if principal is None:
            assert kafka == {}, name
            continue
        assert kafka["KAFKA_CLIENT_SASL_USERNAME"] == principal
        assert kafka["KAFKA_CLIENT_SASL_PASSWORD_FILE"] == f"{directory}/{password_file(principal)}"
        assert kafka["KAFKA_CLIENT_SECURITY_PROTOCOL"] == "SASL_PLAINTEXT"


def test_in_production_a_service_sees_only_its_own_password() -> None:
    """Only the job that sets the passwords sees all."""
    passwords = {password_file(each.name) for each in ALL_PRINCIPALS}
    for name, principal in PRINCIPALS.items():
        seen = passwords & set(services(PRODUCTION).get(name, {}).get("secrets", []))
        if principal == ADMIN.name:
            assert seen == passwords
        else:
            assert seen == ({password_file(principal)} if principal else set()), name


def test_secrets_have_a_password_for_each_principal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the brokers has the passwords of the brokers and of the admin, and no other."""
    tmp_path.chmod(0o700)
    monkeypatch.setattr("sys.argv", ["make_secrets.py", str(tmp_path)])
    runpy.run_path(str(PROJECT / "deploy" / "make_secrets.py"), run_name="__main__")
    names = [each.name for each in ALL_PRINCIPALS]
    passwords = {name: (tmp_path / password_file(name)).read_text() for name in (*names, BROKER_PRINCIPAL)}
    assert len(set(passwords.values())) == len(passwords)
    jaas = (tmp_path / "kafka_broker_jaas").read_text()
    assert {name for name, password in passwords.items() if password in jaas} == {
        BROKER_PRINCIPAL,
        ADMIN.name,
    }
