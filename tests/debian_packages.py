"""Installs programs that tests need and pip cannot install, from Debian's packages, if we have the rights."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NoReturn

import pytest

_LOCK_TIMEOUT_S = 300
"""How long to wait for another apt-get."""


def skip_without(what: str) -> NoReturn:
    """Skip the test because a program is missing. In CI, fail: nobody reads what CI skips."""
    if os.environ.get("CI"):  # noqa: TID251  read by tests, not by a service
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def install(packages: Sequence[str], reason: str) -> None:
    """Try to install the packages. Does nothing without apt-get or without root; raises nothing if it fails."""
    apt_get = shutil.which("apt-get")
    if apt_get is None or os.geteuid() != 0:
        return
    print(f"\ntests: {reason}, installing Debian packages ({' '.join(packages)})", flush=True)
    quietly = [
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        apt_get,
        "-qq",
        "-o",
        f"DPkg::Lock::Timeout={_LOCK_TIMEOUT_S}",
    ]
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run([*quietly, *command], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
