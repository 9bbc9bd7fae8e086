"""Whom to ask what became of a request, and when to ask again."""

from typing import Any
from uuid import UUID

from psycopg import Cursor

from shared.attempts.outcome import Question
from shared.attempts.verification import ASK_AGAIN_AFTER_S, SURELY_ARRIVED_AFTER
from shared.db.first_value import first_value

_CLAIM = """
update payment_attempts
set verifications = verifications + 1,
    next_verify_at = mizan_now() + make_interval(
        secs => (%(pauses)s::float8[])[least(verifications + 1, cardinality(%(pauses)s::float8[]))])
where ctid = any(array(
    select ctid from payment_attempts where state in ('sent', 'unknown') and next_verify_at <= mizan_now()
    order by next_verify_at limit %(limit)s for no key update skip locked))
returning id, sendings, sent_at + %(arrives_after)s <= mizan_now()"""

_OLDEST_UNDER_WAY = """
select coalesce(extract(epoch from mizan_now() - min(sent_at))::float8, 0) from payment_attempts
where state in ('sent', 'unknown') and next_verify_at is not null"""


def claim_verifications(cursor: Cursor[Any], limit: int) -> list[Question]:
    """Requests that it is time to ask the provider about; their next time is set, with growing pauses."""
    values = {"pauses": list(ASK_AGAIN_AFTER_S), "limit": limit, "arrives_after": SURELY_ARRIVED_AFTER}
    return [Question(UUID(str(attempt)), *rest) for attempt, *rest in cursor.execute(_CLAIM, values)]


def oldest_under_way_s(cursor: Cursor[Any]) -> float:
    """For how long the provider of the longest waiting attempt has owed us an answer; 0 when none does.

    Without those that only an operator can decide: they are counted elsewhere, and wait as long as people do.
    """
    return float(first_value(cursor.execute(_OLDEST_UNDER_WAY)))
