"""Fixtures: the site, built as `make docs` builds it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme.documents import ROOT


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with `en/` and `ar/`. The build fails for a link to a page or heading that does not exist."""
    directory = tmp_path_factory.mktemp("documentation") / "site"
    command = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), "--strict", str(directory)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return directory
