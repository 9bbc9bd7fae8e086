"""An attempt and its intent, locked: the intent first, so that the moves of one intent's attempts follow each other."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.attempts.states import AttemptState
from shared.intents import store as intents
from shared.intents.states import State

_FIND_INTENT = "select intent_uuid from payment_attempts where id = %s"
_FIND = "select state, sendings from payment_attempts where id = %s"


class AttemptNotFoundError(Exception):
    """No attempt has this id."""


@dataclass(frozen=True, slots=True)
class LockedAttempt:
    """Nobody else changes it, or its intent, until the transaction ends."""

    id: UUID
    state: AttemptState
    sendings: int
    """How many requests that may charge there were."""
    intent: UUID
    intent_status: State


def lock_attempt(connection: Connection[Any], attempt: UUID) -> LockedAttempt:
    row = connection.execute(_FIND_INTENT, (attempt,)).fetchone()
    if row is None:
        raise AttemptNotFoundError(str(attempt))
    intent = UUID(str(row[0]))
    status = intents.lock(connection, intent)
    found = connection.execute(_FIND, (attempt,)).fetchone()
    assert found is not None
    return LockedAttempt(attempt, AttemptState(found[0]), found[1], intent, status)
