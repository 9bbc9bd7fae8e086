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
    # Two at once, as `make docs` beside `make run`.
    builds = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [build.communicate()[1] for build in builds]
    assert [build.returncode for build in builds] == [0, 0], errors
    assert {path.name for path in directory.parent.iterdir()} == {"site", "site-lock"}
    return directory
