"""Password hashes that take next to no time and memory: nobody attacks the accounts of a test.

Imported once, in tests/conftest.py.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from argon2 import PasswordHasher

from shared.people import passwords

_QUICK = replace(passwords._PARAMETERS, time_cost=1, memory_cost=8, parallelism=1)
_costly = passwords._hasher


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", PasswordHasher.from_parameters(_QUICK))
        yield


@pytest.fixture
def costly_passwords(quick_passwords: None) -> Iterator[None]:
    """As they are outside of tests, for what depends on their cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", _costly)
        yield
