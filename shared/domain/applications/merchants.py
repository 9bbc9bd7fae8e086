"""Merchants: found by id or name, created, and how names are checked."""

import unicodedata
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.applications.errors import (
    InvalidNameError,
    MerchantAmbiguousError,
    MerchantNotFoundError,
)

MAX_NAME_LENGTH = 200
# Control characters, lone surrogates, line and paragraph separators. Joiners and direction marks, which Arabic names
# need, are in none of these categories.
_NOT_IN_A_NAME = {"Cc", "Cs", "Zl", "Zp"}


def check_name(text: str, of: str) -> str:
    """Return the name without surrounding spaces. Raises InvalidNameError, whose text names what `of` is."""
    name = text.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise InvalidNameError(
            f"the {of}'s name must have 1 to {MAX_NAME_LENGTH} characters, not {len(name)}"
        )
    stray = next((c for c in name if unicodedata.category(c) in _NOT_IN_A_NAME), None)
    if stray is not None:
        raise InvalidNameError(f"the {of}'s name must not have the character {stray!a}")
    return name


_BY_ID = "select id from merchants where id = %s"
_BY_NAME = "select id from merchants where name = %s order by id"
_CREATE = "insert into merchants (name) values (%s) returning id"
# Names are not unique, so only this lock keeps two callers from creating one name twice.
_LOCK_NAME = "select pg_advisory_xact_lock('merchants'::regclass::oid::integer, hashtext(%s))"


def find_or_create_merchant(connection: Connection[Any], wanted: UUID | str) -> UUID:
    """Return the merchant with this id, or the only one with this name, which is created if there is none.

    Raises MerchantNotFoundError, MerchantAmbiguousError and InvalidNameError.
    """
    if isinstance(wanted, UUID):
        if connection.execute(_BY_ID, (wanted,)).fetchone() is None:
            raise MerchantNotFoundError(wanted)
        return wanted
    name = check_name(wanted, of="merchant")
    connection.execute(_LOCK_NAME, (name,))
    return _find_only_one(connection, name) or create_merchant(connection, name)


def find_merchant(connection: Connection[Any], wanted: UUID | str) -> UUID:
    """Return the merchant with this id, or the only one with this name.

    Raises MerchantNotFoundError, MerchantAmbiguousError and InvalidNameError.
    """
    if isinstance(wanted, UUID):
        return find_or_create_merchant(connection, wanted)
    found = _find_only_one(connection, check_name(wanted, of="merchant"))
    if found is None:
        raise MerchantNotFoundError(wanted)
    return found


def _find_only_one(connection: Connection[Any], name: str) -> UUID | None:
    found = [row[0] for row in connection.execute(_BY_NAME, (name,))]
    if len(found) > 1:
        raise MerchantAmbiguousError(found)
    return found[0] if found else None


def create_merchant(connection: Connection[Any], name: str) -> UUID:
    row = connection.execute(_CREATE, (name,)).fetchone()
    assert row is not None
    return UUID(str(row[0]))
