"""The PHP client: its package. test_all.py has what all clients have in common."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from shared import VERSION
from tests.clients.programs import find_program
from tests.clients.shared_cases import CLIENTS
from tests.debian_packages import install, skip_without
from tests.merchants.languages import PATH
from tests.readme.documents import Document

PACKAGE = CLIENTS / "php"


@pytest.fixture(scope="module")
def php() -> str:
    return find_program("PHP")


@pytest.fixture(scope="module")
def composer(php: str) -> list[str]:
    if shutil.which("composer", path=PATH) is None:
        install(["composer"], "Composer is missing")
    found = shutil.which("composer", path=PATH)
    if found is None:
        skip_without("Composer is missing: apt-get install composer")
    return [found, "--no-interaction", "--no-plugins", "--quiet"]


def test_composer_installs_the_package_and_finds_its_classes(
    composer: list[str], php: str, tmp_path: Path
) -> None:
    """From its directory: nothing is downloaded."""
    environment = {"PATH": PATH, "HOME": str(tmp_path), "COMPOSER_ALLOW_SUPERUSER": "1"}

    def run(*arguments: str, directory: Path = tmp_path) -> None:
        command = [*composer, *arguments]
        done = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    run("validate", directory=PACKAGE)
    here = {"type": "path", "url": str(PACKAGE), "options": {"symlink": False}}
    project = {"repositories": [here, {"packagist.org": False}], "require": {"mizan/client": f"^{VERSION}"}}
    (tmp_path / "composer.json").write_text(json.dumps(project))
    run("install")
    code = "require 'vendor/autoload.php'; echo Mizan\\Client\\MizanClient::VERSION;"
    done = subprocess.run([php, "-r", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == VERSION


def test_each_file_defines_the_class_of_its_path(php: str) -> None:
    """PSR-4: Composer finds a class by the path of its file."""
    for path in (PACKAGE / "src").rglob("*.php"):
        namespace = "\\".join(("Mizan", "Client", *path.relative_to(PACKAGE / "src").parent.parts))
        text = path.read_text()
        assert f"namespace {namespace};" in text
        assert f"class {path.stem}\n" in text or f"class {path.stem} extends" in text


def test_code_of_the_readme_can_be_parsed(php: str, tmp_path: Path) -> None:
    for code in Document(PACKAGE / "README.md").code("php"):
        (tmp_path / "code.php").write_text(code)
        subprocess.run([php, "-l", str(tmp_path / "code.php")], check=True)


def test_package_has_no_dependencies_and_the_version_of_the_project(php: str) -> None:
    package = json.loads((PACKAGE / "composer.json").read_text())
    assert set(package["require"]) == {"php", "ext-curl", "ext-json"}
    assert package["autoload"]["psr-4"] == {"Mizan\\Client\\": "src/"}
    code = "require 'src/MizanClient.php'; echo Mizan\\Client\\MizanClient::VERSION;"
    done = subprocess.run([php, "-r", code], cwd=PACKAGE, capture_output=True, text=True, check=True)
    assert (package["version"], done.stdout) == (VERSION, VERSION)
