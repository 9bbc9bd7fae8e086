"""Requests status inquiries on checkout.verify for attempts whose outcome is unknown, or may still change.

The same transaction sets the time of the next request, so a lost request is followed by another one.
"""

from typing import Any
from uuid import UUID

from prometheus_client import Counter, Gauge
from psycopg import Cursor

from shared.domain.attempts.status_inquiries import request_inquiries
from shared.platform.database.pool import Database, fetch_scalar

BATCH = 500
PAUSE_S = 0.5

INQUIRY_INTERVALS_S = (10, 20, 60, 300, 900, 3600)
"""Pauses after the first inquiry, the second and so on.

The last pause repeats without end while the outcome is unknown. After that, inquiries end with the last pause."""

_CLAIM = """
update payment_attempts
set verifications = verifications + 1,
    next_verify_at = case when state in ('sent', 'unknown') or verifications < cardinality(%(pauses)s::float8[])
        then mizan_now() + make_interval(
            secs => (%(pauses)s::float8[])[least(verifications + 1, cardinality(%(pauses)s::float8[]))]) end
where ctid = any(array(
    select ctid from payment_attempts where next_verify_at <= mizan_now()
    order by next_verify_at limit %(limit)s for no key update skip locked))
returning id"""

_OLDEST_UNSETTLED = """
select coalesce(extract(epoch from mizan_now() - min(sent_at))::float8, 0) from payment_attempts
where state in ('sent', 'unknown') and next_verify_at is not null"""


def claim_verifications(cursor: Cursor[Any], limit: int) -> list[UUID]:
    """Return the attempts whose status inquiry is due, and set the time of the next one, at growing intervals."""
    values = {"pauses": list(INQUIRY_INTERVALS_S), "limit": limit}
    return [UUID(str(attempt)) for (attempt,) in cursor.execute(_CLAIM, values)]


def oldest_unsettled_age_s(cursor: Cursor[Any]) -> float:
    """Return how long the oldest attempt has been without an outcome; 0 if there is none.

    Attempts that only an operator can decide do not count.
    """
    return float(fetch_scalar(cursor, _OLDEST_UNSETTLED))


REQUESTED = Counter("mizan_status_inquiries_requested", "Status inquiries queued")
OLDEST_UNSETTLED = Gauge(
    "mizan_attempts_in_progress_oldest_age_seconds", "Age of the oldest payment attempt without an outcome"
)


class VerificationRequests:
    name = "verification-requests"

    def __init__(self, database: Database) -> None:
        self._database = database

    def run_once(self) -> float:
        """Request one batch of status inquiries at most."""
        with self._database.transaction() as connection:
            cursor = connection.cursor()
            attempts = claim_verifications(cursor, BATCH)
            request_inquiries(cursor, attempts)
            OLDEST_UNSETTLED.set(oldest_unsettled_age_s(cursor))
        REQUESTED.inc(len(attempts))
        return 0.0 if len(attempts) == BATCH else PAUSE_S

    def close(self) -> None:
        """The process closes the database."""
