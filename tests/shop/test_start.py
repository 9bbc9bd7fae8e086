"""The shop starts anywhere, or says why it cannot."""

import ast
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import requests

from examples.shop.__main__ import main
from stack.ports import find_free_ports
from tests.clients.shared_cases import CLIENTS
from tests.shop.mizan_stand_in import MizanStandIn
from tests.waiting import eventually

_SHOP = Path(main.__code__.co_filename).parent
_KEYS = (
    '{"api_key": "pk_of-the-shop", "access_token": "at_of-the-shop", "webhook_secret": "whsec_of-the-shop"}'
)
_HIDDEN = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
_IMPORTED = """
import sys
import mizan_client, myshop.app
print(mizan_client.__file__)
print({name.split(".")[0] for name in sys.modules} & {"examples", "mizan", "services", "shared"} or "nothing of ours")
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory outside of the repository with a copy of the shop, and the client installed from its wheel."""
    directory = tmp_path_factory.mktemp("copy")
    shutil.copytree(_SHOP, directory / "myshop")
    shutil.copytree(CLIENTS / "python", directory / "client")
    (directory / "credentials.json").write_text(_KEYS)
    pip = sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check"
    offline = "--no-index", "--no-deps"
    for words in (
        ("wheel", *offline, "--no-build-isolation", "--wheel-dir", "wheels", "./client"),
        ("install", *offline, "--find-links", "wheels", "--target", "packages", "mizan-client"),
    ):
        subprocess.run([*pip, *words], cwd=directory, check=True, capture_output=True, timeout=100)
    return directory


def test_copy_of_the_shop_sells_with_the_wheel_of_the_client(copy: Path, mizan: MizanStandIn) -> None:
    """It starts outside of the repository, and creates the intent of an order."""
    with _started(copy, mizan) as url, requests.Session() as session:
        form = dict(_HIDDEN.findall(session.get(url, timeout=30).text))
        answer = session.post(
            f"{url}/orders", data={**form, "coffee": "1"}, timeout=30, allow_redirects=False
        )
    assert (answer.status_code, answer.headers["Location"]) == (303, mizan.only_intent()["checkout_url"])


def test_copy_of_the_shop_needs_nothing_outside_its_directory_but_the_client(copy: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": "packages"},  # noqa: TID251  the process needs PATH and the like
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    client, ours = done.stdout.splitlines()
    assert (Path(client).parent, ours) == (copy / "packages" / "mizan_client", "nothing of ours")


@contextmanager
def _started(copy: Path, mizan: MizanStandIn) -> Iterator[str]:
    port = find_free_ports(1)[0]
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,  # noqa: TID251  the process needs PATH and the like
        "PYTHONPATH": "packages",
        "HTTP_PORT": str(port),
        "SHOP_CREDENTIALS_FILE": "credentials.json",
        "SHOP_MIZAN_URL": mizan.url,
    }
    process = subprocess.Popen([sys.executable, "-m", "myshop"], cwd=copy, env=environment)
    try:
        eventually(lambda: process.poll() is not None or _is_ready(url))
        assert process.poll() is None
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=5).ok
    except requests.ConnectionError:
        return False


def test_requirements_are_the_packages_that_the_shop_imports() -> None:
    imported = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for file in _SHOP.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.ImportFrom) and not node.level) or isinstance(node, ast.Import)
        for alias in node.names
    }
    distributions = packages_distributions()
    # The client is not installed in the tests, and has the name of its package.
    packages = {distributions.get(name, [name])[0].lower() for name in imported - sys.stdlib_module_names}
    required = re.findall(r"^[a-z-]+", (_SHOP / "requirements.txt").read_text(), re.MULTILINE)
    # Flask brings Werkzeug.
    assert {name.replace("_", "-") for name in packages} - {"werkzeug"} == set(required)


def test_database_of_another_version_is_refused_and_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table payments (reference text primary key, ask_at real)")
    before = path.read_bytes()
    monkeypatch.setenv("SHOP_DATABASE", str(path))
    monkeypatch.setenv("SHOP_CREDENTIALS_FILE", str(tmp_path / "credentials.json"))
    with pytest.raises(SystemExit, match=r"the shop cannot start: .*shop\.sqlite is of another version"):
        main()
    assert path.read_bytes() == before
