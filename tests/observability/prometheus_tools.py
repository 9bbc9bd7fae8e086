"""Finds promtool and prometheus: installed, or extracted from Debian's package into the user's cache."""

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from stack.options import cache_directory
from tests.debian_packages import skip_without

_PACKAGE = "prometheus"
_PATIENCE_S = 80
_IMPATIENT = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=15")


class NoToolsError(Exception):
    """The tools are neither installed nor available. The message says why."""


@cache
def find_tool(name: str) -> Path:
    """Return the path of a tool, from the cache if it was downloaded before. Skips the test if there is none."""
    if installed := shutil.which(name):
        return Path(installed)
    kept = cache_directory() / _PACKAGE
    if not (kept / "usr/bin" / name).exists():
        try:
            _fetch(kept)
        except NoToolsError as error:
            skip_without(str(error))
    return kept / "usr/bin" / name


@cache
def _fetch(kept: Path) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NoToolsError(f"{_PACKAGE} is not installed, and this is no Debian to fetch it from")
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Renamed at the end, so that an interrupted download leaves nothing there.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=kept.parent) as name:
        directory = Path(name)
        try:
            _download(directory)
            (package,) = directory.glob("*.deb")
            _run("dpkg-deb", "-x", str(package), "unpacked", cwd=directory)
        except (subprocess.SubprocessError, OSError, ValueError) as error:
            raise NoToolsError(f"Debian's {_PACKAGE} could not be fetched: {_words(error)}") from error
        shutil.rmtree(kept, ignore_errors=True)
        (directory / "unpacked").rename(kept)


def _download(directory: Path) -> None:
    try:
        _run("apt-get", *_IMPATIENT, "download", _PACKAGE, cwd=directory)
    except subprocess.CalledProcessError:
        # No package lists, or old ones: use our own, which need no root and do not change the system.
        lists = directory / "lists"
        (lists / "partial").mkdir(parents=True)
        own = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={directory}", *_IMPATIENT)
        _run("apt-get", *own, "update", cwd=directory)
        _run("apt-get", *own, "download", _PACKAGE, cwd=directory)


def _run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=_PATIENCE_S)


def _words(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return str(said).strip().splitlines()[-1]
