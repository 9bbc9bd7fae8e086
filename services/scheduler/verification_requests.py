"""Verification requests: attempts whose outcome nobody knows are put on checkout.verify when it is time to ask.

Their next time is set in the same transaction, so a request that gets lost is followed by another one.
"""

from prometheus_client import Counter, Gauge

from shared.attempts.asking import claim_verifications, oldest_under_way_s
from shared.attempts.outcome import Question
from shared.db.pool import Database
from shared.messages import VerificationDue, encode
from shared.topics import CHECKOUT_VERIFY

REQUESTED = Counter("mizan_verifications_requested", "Questions to providers that were put into line")
UNDER_WAY = Gauge(
    "mizan_attempt_under_way_seconds", "Age of the oldest payment attempt whose outcome is not known"
)

BATCH = 500
PAUSE_S = 0.5

_QUEUE = """
insert into outbox (topic, key, payload, trace)
values (%(topic)s, %(attempt)s, %(payload)s,
        (select i.trace from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
         where t.id = %(attempt)s))"""


class VerificationRequests:
    name = "verification-requests"

    def __init__(self, database: Database) -> None:
        self._database = database

    def turn(self) -> float:
        """A batch at most."""
        with self._database.transaction() as connection:
            cursor = connection.cursor()
            questions = claim_verifications(cursor, BATCH)
            cursor.executemany(
                _QUEUE,
                [
                    {"topic": CHECKOUT_VERIFY.name, "attempt": question.attempt, "payload": _due(question)}
                    for question in questions
                ],
            )
            UNDER_WAY.set(oldest_under_way_s(cursor))
        REQUESTED.inc(len(questions))
        return 0.0 if len(questions) == BATCH else PAUSE_S

    def close(self) -> None:
        """The database belongs to the process."""


def _due(question: Question) -> str:
    return encode(VerificationDue(question.attempt, question.number, question.surely_arrived)).decode()
