"""Makes tests faster without changing what they prove: cheap password hashes, and compiled templates that are reused.

A pytest plugin of tests/conftest.py.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from argon2 import PasswordHasher
from flask import Flask
from jinja2 import FileSystemBytecodeCache

from shared.domain.accounts import passwords

_CHEAP = replace(passwords._PARAMETERS, time_cost=1, memory_cost=8, parallelism=1)
_production_hasher = passwords._hasher


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Hash passwords with almost no time and memory: nobody attacks the accounts of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", PasswordHasher.from_parameters(_CHEAP))
        yield


@pytest.fixture
def costly_passwords(quick_passwords: None) -> Iterator[None]:
    """Hash passwords as in production, for tests that depend on the cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", _production_hasher)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep compiled templates: each test creates its own application, which would compile them again."""
    cache = FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Flask, "jinja_options", {**Flask.jinja_options, "bytecode_cache": cache})
        yield
