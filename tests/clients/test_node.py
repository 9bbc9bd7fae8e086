"""The Node client: its package. test_all.py has what all clients have in common."""

import json
import subprocess
from pathlib import Path

import pytest

from shared import VERSION
from tests.clients.programs import find_program
from tests.clients.shared_cases import CLIENTS
from tests.readme.documents import Document

PACKAGE = CLIENTS / "node"


@pytest.fixture(scope="module")
def node() -> str:
    return find_program("Node")


@pytest.mark.parametrize("body", ["'{}'", "{}", "undefined"])
def test_webhook_body_must_be_bytes(node: str, body: str) -> None:
    code = f"import {{ verifyWebhook }} from './src/index.js'; verifyWebhook({body}, '', ['whsec_new']);"
    done = subprocess.run(
        [node, "--input-type=module", "-e", code], cwd=PACKAGE, capture_output=True, text=True, check=False
    )
    assert "TypeError: rawBody must be a Buffer" in done.stderr


def test_declared_types_have_all_exports(node: str) -> None:
    code = "import * as all from './src/index.js'; console.log(JSON.stringify(Object.keys(all)));"
    done = subprocess.run(
        [node, "--input-type=module", "-e", code], cwd=PACKAGE, capture_output=True, check=True
    )
    declared = (PACKAGE / "src" / "index.d.ts").read_text()
    for name in json.loads(done.stdout):
        assert any(f"export {kind} {name}" in declared for kind in ("class", "function", "const")), name


def test_code_of_the_readme_can_be_parsed(node: str, tmp_path: Path) -> None:
    for code in Document(PACKAGE / "README.md").code("js"):
        (tmp_path / "code.mjs").write_text(code)
        subprocess.run([node, "--check", str(tmp_path / "code.mjs")], check=True)


def test_package_has_no_dependencies_and_the_version_of_the_project() -> None:
    package = json.loads((PACKAGE / "package.json").read_text())
    assert "dependencies" not in package
    assert package["version"] == VERSION
    assert f"VERSION = '{VERSION}'" in (PACKAGE / "src" / "client.js").read_text()
    for path in (package["types"], *package["exports"]["."].values()):
        assert (PACKAGE / path).is_file()
