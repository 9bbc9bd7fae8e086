"""What is made cheaper for tests, without changing what they prove. Imported once, in tests/conftest.py."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from argon2 import PasswordHasher
from flask import Flask
from jinja2 import FileSystemBytecodeCache

from shared.domain.accounts import passwords

_QUICK = replace(passwords._PARAMETERS, time_cost=1, memory_cost=8, parallelism=1)
_costly = passwords._hasher


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Password hashes that take next to no time and memory: nobody attacks the accounts of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", PasswordHasher.from_parameters(_QUICK))
        yield


@pytest.fixture
def costly_passwords(quick_passwords: None) -> Iterator[None]:
    """As they are outside of tests, for what depends on their cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", _costly)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each test makes an application of its own, which would compile the same templates again."""
    cache = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "jinja_options", {**Flask.jinja_options, "bytecode_cache": cache})
        yield
