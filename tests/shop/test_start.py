"""The shop starts anywhere, or says why it cannot."""

import ast
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from examples.shop.__main__ import main

_SHOP = Path(main.__code__.co_filename).parent
_OPEN_COPY = """
import sys
from pathlib import Path
sys.path.insert(0, ".")
from myshop.app import create_shop
from myshop.settings import read_settings
shop = create_shop(read_settings({"SHOP_CREDENTIALS_FILE": "credentials.json"}))
assert shop.app.test_client().get("/").status_code == 200
assert not [name for name in sys.modules if name.split(".")[0] in ("examples", "mizan", "services", "shared")]
"""


def test_copy_of_the_shop_needs_nothing_outside_its_directory(tmp_path: Path) -> None:
    shutil.copytree(_SHOP, tmp_path / "myshop")
    (tmp_path / "credentials.json").write_text('{"api_key": "k", "access_token": "t", "webhook_secret": "s"}')
    done = subprocess.run(
        [sys.executable, "-c", _OPEN_COPY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_requirements_are_the_packages_that_the_shop_imports() -> None:
    imported = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for file in _SHOP.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if (isinstance(node, ast.ImportFrom) and not node.level) or isinstance(node, ast.Import)
        for alias in node.names
    }
    distributions = packages_distributions()
    packages = {distributions[name][0].lower() for name in imported - sys.stdlib_module_names}
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
