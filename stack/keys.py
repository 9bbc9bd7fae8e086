"""The keys of a stack: one file for each purpose in STACK_DIR/keys, and which program gets which."""

import base64
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from shared.platform.keys import STORED_PURPOSES
from shared.platform.private_files import write_private_file
from shared.platform.settings import FALLBACK_VARIABLE, KEY_VARIABLES, TRANSIT_VARIABLES, KeyPurpose
from stack.errors import StackError
from stack.options import Options
from stack.services import Service

DIRECTORY = "keys"
OLD_FILE = "secret_keys"
"""The one key that earlier versions made for all purposes. While the file is there, it is the last key of each."""


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without any key or way to a KMS, for what needs none."""
    names = {name for variable in _variables() for name in (variable, f"{variable}_FILE")}
    names |= set(TRANSIT_VARIABLES)
    return {name: value for name, value in environment.items() if name not in names}


def service_keys(service: Service, options: Options) -> dict[str, str]:
    """Return the variables of the keys that this service needs. Raises StackError if a file of a key is empty."""
    return _key_environment(service.key_purposes, options, service.name)


def command_keys(options: Options) -> dict[str, str]:
    """Return the variables of the keys that `mizan` needs here: of all purposes, because `mizan keys` covers them."""
    return _key_environment(STORED_PURPOSES, options, "cli")


def _key_environment(purposes: Iterable[KeyPurpose], options: Options, process: str) -> dict[str, str]:
    wanted = sorted(purposes)
    if not wanted:
        return {}
    fallback = _given(options.inherited, FALLBACK_VARIABLE)
    # What somebody gave for all purposes is used for them, except in production, where it never encrypts.
    are_made = not fallback or options.is_production
    environment = fallback or _old_key(options.directory)
    if set(wanted) & set(STORED_PURPOSES):
        environment |= {
            name: options.inherited[name] for name in TRANSIT_VARIABLES if name in options.inherited
        }
    for purpose in wanted:
        given = _given(options.inherited, KEY_VARIABLES[purpose])
        if given:
            environment |= given
        elif are_made:
            path = _ensure_key(options.directory, _file_name(purpose, process))
            environment[f"{KEY_VARIABLES[purpose]}_FILE"] = str(path)
    return environment


def _variables() -> tuple[str, ...]:
    return (FALLBACK_VARIABLE, *KEY_VARIABLES.values())


def _given(inherited: Mapping[str, str], variable: str) -> dict[str, str]:
    names = (variable, f"{variable}_FILE")
    return {name: inherited[name] for name in names if inherited.get(name)}


def _old_key(directory: Path) -> dict[str, str]:
    path = directory / OLD_FILE
    return {f"{FALLBACK_VARIABLE}_FILE": str(_not_empty(path))} if path.exists() else {}


def _file_name(purpose: KeyPurpose, process: str) -> str:
    """Return the name of the file. Each service has session keys of its own."""
    name = KEY_VARIABLES[purpose].removeprefix("MIZAN_").lower()
    return f"{process}_{name}" if purpose is KeyPurpose.SESSIONS else name


def _ensure_key(directory: Path, name: str) -> Path:
    """Return the file with the key; create it at the first start."""
    path = directory / DIRECTORY / name
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private_file(path, base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() + "\n")
    return _not_empty(path)


def _not_empty(path: Path) -> Path:
    if not path.read_text().strip():
        raise StackError(
            f"{path} is empty; without the key, what it encrypted in this stack cannot be read.",
            "Restore the key, or remove the file if you do not need the encrypted data.",
        )
    return path
