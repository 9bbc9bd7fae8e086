"""The languages of docs/merchants.md and clients/: what runs them, where to get it, how each checks a signature."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import debian_packages
from tests.merchants.document import COMMANDS, Commands

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"  # noqa: TID251  for programs
"""Python is the one that runs the tests."""


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    suffix: str
    presence: tuple[str, ...]
    """A command that succeeds if everything needed is installed."""
    packages: tuple[str, ...]
    checking: tuple[str, ...]
    """A command that exits with 0 if SIGNATURE is the signature of the file body.json."""

    @property
    def files(self) -> tuple[str, str]:
        return f"mizan.{self.suffix}", f"shop.{self.suffix}"

    @property
    def commands(self) -> Commands:
        return COMMANDS[self.name]

    def is_installed(self) -> bool:
        program = shutil.which(self.presence[0], path=PATH)
        return (
            program is not None and subprocess.run([program, *self.presence[1:]], check=False).returncode == 0
        )

    def require(self) -> None:
        """Skip the test if the language is not installed. In CI, fail."""
        if self.is_installed():
            return
        debian_packages.skip_without(
            f"The {self.name} code for merchants cannot be run: `{' '.join(self.presence)}` fails. "
            f"Install it (Debian: apt-get install {' '.join(self.packages)})."
        )


LANGUAGES = (
    Language(
        "Python",
        "py",
        ("python", "-c", "import flask, requests"),
        ("python3-flask", "python3-requests"),
        (
            "python",
            "-c",
            """import mizan, os
raise SystemExit(not mizan.is_from_mizan(open('body.json', 'rb').read(), os.environ['SIGNATURE']))""",
        ),
    ),
    Language(
        "Node",
        "mjs",
        ("node", "-e", "process.exit(typeof fetch === 'function' ? 0 : 1)"),
        ("nodejs",),
        (
            "node",
            "--input-type=module",
            "-e",
            """import { isFromMizan } from './mizan.mjs'; import { readFileSync } from 'node:fs';
process.exit(isFromMizan(readFileSync('body.json'), process.env.SIGNATURE) ? 0 : 1)""",
        ),
    ),
    Language(
        "PHP",
        "php",
        ("php", "-r", "exit(extension_loaded('curl') && PHP_VERSION_ID >= 80200 ? 0 : 1);"),
        ("php-cli", "php-curl"),
        (
            "php",
            "-r",
            """require 'mizan.php';
exit(is_from_mizan(file_get_contents('body.json'), getenv('SIGNATURE')) ? 0 : 1);""",
        ),
    ),
)


def install_missing() -> None:
    for language in LANGUAGES:
        if not language.is_installed():
            debian_packages.install(language.packages, f"{language.name} is missing")
