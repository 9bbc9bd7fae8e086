"""Programs that tests drive and pip cannot bring: Debian's packages, where installing them is ours to do."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NoReturn

import pytest

_PATIENCE_S = 300
"""For another apt-get that is at work."""


def skip_without(what: str) -> NoReturn:
    """Skip the test for want of a program. In CI it fails: nobody reads what CI skips."""
    if os.environ.get("CI"):  # noqa: TID251  of the tests, not of a service
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


def install(packages: Sequence[str], reason: str) -> None:
    """Tries; whoever needs the program finds out whether it worked."""
    apt_get = shutil.which("apt-get")
    if apt_get is None or os.geteuid() != 0:
        return
    print(f"\ntests: {reason}, installing Debian's ({' '.join(packages)})", flush=True)
    quietly = [
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        apt_get,
        "-qq",
        "-o",
        f"DPkg::Lock::Timeout={_PATIENCE_S}",
    ]
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run([*quietly, *command], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
