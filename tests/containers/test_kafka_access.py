"""In the compose files each service logs in to Kafka as its own principal, or does not learn where Kafka is."""

import runpy
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from mizan.__main__ import main
from shared.domain.kafka_principals import ADMIN, ALL_PRINCIPALS, CLI, WEBHOOKS
from shared.platform.kafka.access import password_file, sasl_client
from stack.broker import BROKER_PRINCIPAL, java_command
from stack.engines import ChildProcess
from stack.kafka import count_brokers, install_kafka
from stack.options import cache_directory
from stack.ports import find_free_ports
from stack.services import JOBS, SERVICES, SHOP
from stack.watchdog import Watchdog
from tests.containers.compose_files import DEVELOPMENT, PRODUCTION, PROJECT, environment, services
from tests.waiting import eventually

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


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that deploy/make_secrets.py has filled."""
    directory = tmp_path / "secrets"
    monkeypatch.setattr("sys.argv", ["make_secrets.py", str(directory)])
    runpy.run_path(str(PROJECT / "deploy" / "make_secrets.py"), run_name="__main__")
    return directory


def test_secrets_have_a_password_for_each_principal(secrets: Path) -> None:
    """The file of the brokers has the passwords of the brokers and of the admin, and no other."""
    names = [each.name for each in ALL_PRINCIPALS]
    passwords = {name: (secrets / password_file(name)).read_text() for name in (*names, BROKER_PRINCIPAL)}
    assert len(set(passwords.values())) == len(passwords)
    jaas = (secrets / "kafka_broker_jaas").read_text()
    assert {name for name, password in passwords.items() if password in jaas} == {
        BROKER_PRINCIPAL,
        ADMIN.name,
    }


@contextmanager
def broker_of_compose(directory: Path, secrets: Path) -> Iterator[str]:
    """Run a broker with the settings of the container `kafka`, on ports of this machine. Yield its address."""
    client, controller = find_free_ports(2)
    given = environment("kafka")
    # The image makes settings of its variables in this way.
    settings = {
        name.removeprefix("KAFKA_").lower().replace("___", "-").replace("_", "."): value
        for name, value in given.items()
        if name.startswith("KAFKA_") and name not in {"KAFKA_OPTS", "KAFKA_HEAP_OPTS"}
    }
    settings |= {
        "listeners": f"CLIENT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{client}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "log.dirs": str(directory / "data"),
    }
    file = directory / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    jars = install_kafka(cache_directory())
    tool = "kafka.tools.StorageTool", "format", f"--cluster-id={given['CLUSTER_ID']}", f"--config={file}"
    subprocess.run(java_command(jars, directory, *tool), check=True, capture_output=True)
    java, *arguments = java_command(jars, directory, "kafka.Kafka", str(file))
    login = given["KAFKA_OPTS"].replace("/run/mizan", str(secrets))
    watchdog = Watchdog()
    broker = ChildProcess([java, login, *arguments], log=directory / "kafka.log", watchdog=watchdog)
    broker.start()
    try:
        yield f"127.0.0.1:{client}"
    finally:
        broker.kill()
        watchdog.stop()


@pytest.mark.kills
@pytest.mark.timeout(300)
def test_broker_of_compose_knows_nobody_until_the_topics_job_has_run(tmp_path: Path, secrets: Path) -> None:
    """The same settings on a real broker: the admin logs in, its job makes the users, and others are refused."""
    passwords = {each.name: (secrets / password_file(each.name)).read_text() for each in ALL_PRINCIPALS}
    with broker_of_compose(tmp_path, secrets) as servers:
        admin = sasl_client(ADMIN.name, passwords[ADMIN.name], mechanism="PLAIN")
        eventually(lambda: count_brokers(servers, admin) == 1, within=120)
        webhooks = sasl_client(WEBHOOKS.name, passwords[WEBHOOKS.name])
        assert count_brokers(servers, webhooks) == 0
        job = {
            name: value.replace("/var/lib/mizan/secrets", str(secrets))
            for name, value in environment("topics", {"KAFKA_BOOTSTRAP_SERVERS": servers}).items()
        }
        words = [
            word.replace("/var/lib/mizan/secrets", str(secrets)) for word in services()["topics"]["command"]
        ]
        done = CliRunner().invoke(
            main, words[3:], env=job | {"STACK_DIR": str(tmp_path)}, catch_exceptions=False
        )
        assert (done.exit_code, done.stderr) == (0, "")
        eventually(lambda: count_brokers(servers, webhooks) == 1)
        assert count_brokers(servers, {}) == 0
