"""Form tokens: the idempotency key of a form.

A form carries the encrypted id of the object that it is going to create. Sent twice, it creates one object, and nobody
can choose an id.
"""

from dataclasses import dataclass
from enum import StrEnum
from time import time
from typing import Any
from uuid import UUID

from flask import abort
from psycopg import Cursor

from shared.platform.encryption import DecryptionError, SecretBox, WrongPurposeError
from shared.platform.uuids import uuid7_timestamp

# The ids contain the time at which they were made, and lists and partitions rely on it.
_VALID_FOR_S = 3600


class FormTokenExpiredError(Exception):
    """The page was open for too long, or the token was not made here."""


class FormPurpose(StrEnum):
    """What the form creates."""

    APPLICATION = "application"
    API_KEY = "api_key"
    ACCESS_TOKEN = "access_token"  # noqa: S105  the name of a kind
    TEST_DELIVERY = "test_delivery"


@dataclass(frozen=True, slots=True)
class FormTokens:
    box: SecretBox

    def create(self, cursor: Cursor[Any], purpose: FormPurpose, owner_id: UUID) -> str:
        """Return a token for one object that will belong to the merchant or application `owner_id`."""
        row = cursor.execute("select uuidv7()").fetchone()
        assert row is not None
        return self.box.encrypt(str(row[0]), _seal_purpose(purpose, owner_id))

    def read(self, token: str, purpose: FormPurpose, owner_id: UUID) -> UUID:
        """Return the id of the object to create.

        Raises FormTokenExpiredError, and aborts with 404 if the token is for another purpose or owner.
        """
        if not token.isascii():
            raise FormTokenExpiredError
        try:
            object_id = self.box.decrypt(token, _seal_purpose(purpose, owner_id))
        except DecryptionError:
            raise FormTokenExpiredError from None
        except WrongPurposeError:
            abort(404)
        if time() - uuid7_timestamp(object_id) > _VALID_FOR_S:
            raise FormTokenExpiredError
        return UUID(object_id)


def _seal_purpose(purpose: FormPurpose, owner_id: UUID) -> str:
    return f"form/{purpose}/{owner_id}"
