"""The stack makes a key for each purpose, and each program gets only its own."""

import dataclasses
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from shared.platform.database.roles import ROLE_NAMES
from shared.platform.settings import FALLBACK_VARIABLE, KEY_VARIABLES, KeyPurpose
from stack.database_roles import RoleUrls
from stack.errors import StackError
from stack.keys import command_keys, service_keys
from stack.options import Options, read_options
from stack.programs import common_environment, service_program
from stack.services import SERVICES, Service

VARIABLES = {FALLBACK_VARIABLE, *KEY_VARIABLES.values()}
GIVEN = Fernet.generate_key().decode()


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)
    return dataclasses.replace(read_options(), directory=tmp_path)


def _inheriting(options: Options, **variables: str) -> Options:
    return dataclasses.replace(options, inherited={**options.inherited, **variables})


def _service(name: str) -> Service:
    return next(service for service in SERVICES if service.name == name)


def _purposes(environment: dict[str, str]) -> set[str]:
    names = {name.removesuffix("_FILE") for name in environment}
    return names & VARIABLES


def test_each_program_gets_the_keys_of_its_purposes_and_no_other(options: Options) -> None:
    """In private files. Services with sessions have another key each; of the rest, there is one of each purpose."""
    assert not _purposes(common_environment(options))
    urls = RoleUrls(dict.fromkeys(ROLE_NAMES, "postgresql://x"), options.directory / "database_urls")
    files: dict[str, set[str]] = {}
    for service in SERVICES:
        environment = dict(service_program(service, options, urls).environment)
        assert _purposes(environment) == {KEY_VARIABLES[purpose] for purpose in service.key_purposes}
        for purpose in service.key_purposes:
            files.setdefault(purpose, set()).add(environment[f"{KEY_VARIABLES[purpose]}_FILE"])
    assert {purpose: len(paths) for purpose, paths in files.items()} == {
        KeyPurpose.WEBHOOK_SECRETS: 1,
        KeyPurpose.PROVIDER_CREDENTIALS: 1,
        KeyPurpose.CUSTOMER_DATA: 1,
        KeyPurpose.SESSIONS: 3,
    }
    keys = [Path(path).read_text() for paths in files.values() for path in paths]
    assert len(set(keys)) == 6
    for path in (path for paths in files.values() for path in paths):
        Fernet(Path(path).read_text().strip())
        assert Path(path).stat().st_mode & 0o777 == 0o600
    assert (options.directory / "keys").stat().st_mode & 0o777 == 0o700


def test_next_start_finds_the_same_keys(options: Options) -> None:
    first = {path: Path(path).read_text() for path in command_keys(options).values()}
    assert {path: Path(path).read_text() for path in command_keys(options).values()} == first
    assert len(first) == 3


def test_one_key_of_an_earlier_version_stays_the_last_key_of_each_purpose(options: Options) -> None:
    """Until somebody removes the file. Programs without keys do not get it."""
    old = options.directory / "secret_keys"
    old.write_text(GIVEN + "\n")
    for service in SERVICES:
        environment = service_keys(service, options)
        assert (environment.get("MIZAN_SECRET_KEYS_FILE") == str(old)) is bool(service.key_purposes)
        assert _purposes(environment) - {FALLBACK_VARIABLE} == {
            KEY_VARIABLES[purpose] for purpose in service.key_purposes
        }
    assert command_keys(options)["MIZAN_SECRET_KEYS_FILE"] == str(old)
    old.unlink()
    assert FALLBACK_VARIABLE not in _purposes(command_keys(options))


def test_given_keys_are_passed_to_their_processes_only(options: Options) -> None:
    given = _inheriting(options, MIZAN_PROVIDER_KEYS=GIVEN)
    assert service_keys(_service("checkout"), given)["MIZAN_PROVIDER_KEYS"] == GIVEN
    assert "MIZAN_PROVIDER_KEYS" not in service_keys(_service("webhooks"), given)
    assert service_keys(_service("api"), given) == {}
    assert not _purposes(common_environment(given))


def test_given_key_for_all_purposes_is_used_for_them_outside_production(options: Options) -> None:
    """In production it decrypts only, beside keys that are made."""
    given = _inheriting(options, MIZAN_SECRET_KEYS=GIVEN)
    assert service_keys(_service("webhooks"), given) == {"MIZAN_SECRET_KEYS": GIVEN}
    production = _inheriting(options, MIZAN_SECRET_KEYS=GIVEN, MIZAN_ENV="production")
    assert _purposes(service_keys(_service("webhooks"), production)) == {
        "MIZAN_SECRET_KEYS",
        "MIZAN_WEBHOOK_SECRET_KEYS",
    }
    assert service_keys(_service("api"), production) == {}


@pytest.mark.parametrize("name", ["keys/webhook_secret_keys", "secret_keys"])
def test_empty_key_file_is_reported_and_not_replaced(options: Options, name: str) -> None:
    """A new key would hide that nothing can be decrypted."""
    path = options.directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n")
    with pytest.raises(StackError, match=path.name):
        service_keys(_service("webhooks"), options)
    assert path.read_text() == "\n"
