"""The addresses of the database for each role, and the roles of the embedded server.

Only this module uses the superuser of the embedded server, and only to prepare the roles.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from shared.platform.database.roles import OWNER, ROLE_NAMES, own_database, prepare_roles
from shared.platform.private_files import write_private_file
from stack.errors import StackError

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nothing"
"""For programs without a role: they never connect, but read the same settings."""


@dataclass(frozen=True)
class RoleUrls:
    """The address of the database for each role, as files that only their owner can read."""

    urls: Mapping[str, str]
    directory: Path

    @property
    def owner(self) -> str:
        return self.urls[OWNER]

    def environment(self, role: str | None) -> dict[str, str]:
        """Return the variable that names the file with the address for a role. None: a program without a database."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        path = self.directory / (role or "none")
        write_private_file(path, (self.urls[role] if role else NO_DATABASE) + "\n")
        return {"DATABASE_URL_FILE": str(path)}


def ensure_role_passwords(path: Path) -> dict[str, str]:
    """Return the passwords of the roles of the embedded server; create those that are missing."""
    known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    passwords = {name: known.get(name) or secrets.token_urlsafe(24) for name in ROLE_NAMES}
    if passwords != known:
        write_private_file(path, json.dumps(passwords, indent=2) + "\n")
    return passwords


def prepare_embedded_roles(superuser_url: str, passwords: Mapping[str, str]) -> None:
    """Create the roles, set their passwords, and give the database to its owner, also one of an earlier version."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        prepare_roles(connection, passwords)
        own_database(connection)


def urls_with_passwords(url: str, passwords: Mapping[str, str]) -> dict[str, str]:
    """Return the address for each role, like `url` but with another user and password."""
    return {role: _with_login(url, role, password) for role, password in passwords.items()}


def external_urls(url: str, passwords_file: str | None) -> dict[str, str]:
    """Return the addresses of an external database: of each role, or the given one for all if no passwords are given.

    Raises StackError if the file cannot be used.
    """
    if passwords_file is None:
        return dict.fromkeys(ROLE_NAMES, url)
    try:
        passwords = json.loads(Path(passwords_file).read_text())
        if not all(isinstance(passwords[name], str) for name in ROLE_NAMES):
            raise TypeError("a password is not a text")  # noqa: TRY301  one message for all of it
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StackError(
            f"DATABASE_ROLE_PASSWORDS_FILE cannot be used: {passwords_file} ({type(error).__name__}: {error}).",
            "It must be the file that `mizan roles` was given: a JSON object with a password for each role.",
        ) from None
    return urls_with_passwords(url, passwords)


def _with_login(url: str, user: str, password: str) -> str:
    """Keep the rest of the address as it is: hosts, ports, database and parameters."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    hosts = authority.rpartition("@")[2]
    return f"{scheme}://{user}:{quote(password, safe='')}@{hosts}{slash}{path}"
