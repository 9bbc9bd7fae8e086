"""A form carries, sealed, the id of what it is going to make: sent twice, it makes one; and nobody chooses an id."""

from dataclasses import dataclass
from enum import StrEnum
from time import time
from typing import Any
from uuid import UUID

from flask import abort
from psycopg import Cursor

from shared.platform.encryption import DecryptionError, SecretBox, WrongPurposeError
from shared.platform.uuids import uuid7_timestamp

# The ids tell the time, and lists and partitions rely on it.
_GOOD_FOR_S = 3600


class WishTooOldError(Exception):
    """The page has been open for too long, or its form was not ours."""


class Wish(StrEnum):
    APPLICATION = "application"
    API_KEY = "api_key"
    ACCESS_TOKEN = "access_token"  # noqa: S105  the name of a kind
    TEST_DELIVERY = "test_delivery"


@dataclass(frozen=True, slots=True)
class Wishes:
    box: SecretBox

    def new(self, cursor: Cursor[Any], wish: Wish, of: UUID) -> str:
        """`of` says whose it will be: a merchant's or an application's."""
        row = cursor.execute("select uuidv7()").fetchone()
        assert row is not None
        return self.box.encrypt(str(row[0]), _purpose(wish, of))

    def read(self, sealed: str, wish: Wish, of: UUID) -> UUID:
        if not sealed.isascii():
            raise WishTooOldError
        try:
            wished = self.box.decrypt(sealed, _purpose(wish, of))
        except DecryptionError:
            raise WishTooOldError from None
        except WrongPurposeError:
            abort(404)
        if time() - uuid7_timestamp(wished) > _GOOD_FOR_S:
            raise WishTooOldError
        return UUID(wished)


def _purpose(wish: Wish, of: UUID) -> str:
    return f"wish/{wish}/{of}"
