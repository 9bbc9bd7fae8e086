"""The languages of docs/examples and clients/: what runs them, where to get it, how each checks a signature."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import debian_packages
from tests.clients.shared_cases import CLIENTS
from tests.merchants.document import COMMANDS, Commands

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"  # noqa: TID251  for programs
"""Python is the one that runs the tests."""
# Composer writes a longer one, with the same effect for this package.
_AUTOLOAD = r"""<?php
spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/mizan/client/src/' . strtr(substr($class, strlen('Mizan\\Client\\')), '\\', '/') . '.php';
});
"""


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    suffix: str
    presence: tuple[str, ...]
    """A command that succeeds if everything needed is installed."""
    packages: tuple[str, ...]
    client: tuple[str, str]
    """Where its client is in clients/, and where the directory of a shop has it."""
    checking: tuple[str, ...]
    """A command that exits with 0 if SIGNATURE is the signature of the file body.json."""

    @property
    def file(self) -> str:
        return f"shop.{self.suffix}"

    @property
    def commands(self) -> Commands:
        return COMMANDS[self.name]

    def is_installed(self) -> bool:
        program = shutil.which(self.presence[0], path=PATH)
        return (
            program is not None and subprocess.run([program, *self.presence[1:]], check=False).returncode == 0
        )

    def install_client(self, directory: Path) -> None:
        """Put the client where the package manager of the language would put it."""
        source, target = self.client
        shutil.copytree(CLIENTS / source, directory / target)
        if self.name == "PHP":
            (directory / "vendor" / "autoload.php").write_text(_AUTOLOAD)

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
        ("python/mizan_client", "mizan_client"),
        (
            "python",
            "-c",
            """import os; from mizan_client import SignatureError, verify_webhook
try: verify_webhook(open('body.json', 'rb').read(), os.environ['SIGNATURE'], os.environ['MIZAN_WEBHOOK_SECRET'])
except SignatureError: raise SystemExit(1)""",
        ),
    ),
    Language(
        "Node",
        "mjs",
        ("node", "-e", "process.exit(typeof fetch === 'function' ? 0 : 1)"),
        ("nodejs",),
        ("node", "node_modules/mizan-client"),
        (
            "node",
            "--input-type=module",
            "-e",
            """import { SignatureError, verifyWebhook } from 'mizan-client'; import { readFileSync } from 'node:fs';
const { SIGNATURE, MIZAN_WEBHOOK_SECRET } = process.env;
try { verifyWebhook(readFileSync('body.json'), SIGNATURE, MIZAN_WEBHOOK_SECRET); }
catch (error) { if (!(error instanceof SignatureError)) throw error; process.exit(1); }""",
        ),
    ),
    Language(
        "PHP",
        "php",
        ("php", "-r", "exit(extension_loaded('curl') && PHP_VERSION_ID >= 80200 ? 0 : 1);"),
        ("php-cli", "php-curl"),
        ("php", "vendor/mizan/client"),
        (
            "php",
            "-r",
            r"""use Mizan\Client\{Exception\SignatureException, Webhook}; require 'vendor/autoload.php';
try { Webhook::verify(file_get_contents('body.json'), getenv('SIGNATURE'), getenv('MIZAN_WEBHOOK_SECRET')); }
catch (SignatureException) { exit(1); }""",
        ),
    ),
)


def install_missing() -> None:
    for language in LANGUAGES:
        if not language.is_installed():
            debian_packages.install(language.packages, f"{language.name} is missing")
