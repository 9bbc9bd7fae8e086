"""The logins of Kafka's principals: their passwords in a directory, a file for each, which only its owner can read."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shared.domain.kafka_principals import ADMIN, CLI
from shared.platform.kafka.access import password_file, sasl_client
from shared.platform.private_files import write_private_file
from stack.errors import StackError


@dataclass(frozen=True)
class KafkaLogins:
    """How each principal logs in."""

    directory: Path
    """With the password of each principal, in the file `password_file`."""
    protocol: str = "SASL_PLAINTEXT"

    def client(self, principal: str) -> dict[str, str]:
        """Return the settings of a client. Raises StackError if there is no password."""
        return sasl_client(
            principal, read_passwords(self.directory, [principal])[principal], protocol=self.protocol
        )

    def environment(self, principal: str) -> dict[str, str]:
        """Return the same settings as variables, which name the file of the password and do not hold it."""
        given = {**self.client(principal), "sasl.password": ""}
        variables = {
            f"KAFKA_CLIENT_{name.replace('.', '_').upper()}": value for name, value in given.items() if value
        }
        return variables | {"KAFKA_CLIENT_SASL_PASSWORD_FILE": str(self.directory / password_file(principal))}


def kafka_client_settings(logins: KafkaLogins | None) -> dict[str, dict[str, str]]:
    """Return the entries of stack.json with which scripts, and the command line, log in to Kafka."""
    if logins is None:
        return {}
    return {"kafka_client": logins.client(ADMIN.name), "kafka_cli_client": logins.client(CLI.name)}


def ensure_passwords(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the password of each principal; make those that are missing. Raises StackError if a file is empty."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        if not (directory / password_file(name)).exists():
            write_private_file(directory / password_file(name), secrets.token_urlsafe(32) + "\n")
    return read_passwords(directory, names)


def read_passwords(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the password of each principal. Raises StackError if a file is missing or empty."""
    passwords = {}
    for name in names:
        try:
            passwords[name] = (directory / password_file(name)).read_text().strip()
        except OSError as error:
            raise StackError(
                f"The password of Kafka's user {name} cannot be read: {error.strerror} ({error.filename}).",
                "Make the file readable, or restore it.",
            ) from error
        if not passwords[name]:
            raise StackError(
                f"{directory / password_file(name)} is empty, so {name} cannot log in to Kafka.",
                "Put the password back, or remove the file: then a new one is made.",
            )
    return passwords
