"""What providers say of attempts by themselves, checked against what we know, and taken in."""

import logging
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.checkout.following import Following
from services.checkout.metrics import NEWS, count_settled
from services.checkout.providers.port import ProviderAnswer
from shared.domain.attempts.provider_exchange import Outcome, Settled
from shared.domain.attempts.settlement import settle_notified
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database

_log = logging.getLogger(__name__)

_KNOWN = """
select t.id, t.intent_uuid, t.method, t.provider, t.provider_account_id, t.provider_reference, i.amount, i.currency,
       i.trace
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.id = %s"""


@dataclass(frozen=True, slots=True)
class Known:
    """What we know of an attempt that somebody speaks of."""

    attempt: UUID
    intent: UUID
    method: PaymentMethod
    provider: str
    account: UUID | None
    reference: str | None
    """The provider's own name for it, if it has told us."""
    amount: int
    currency: str
    trace: str | None = None
    """The traceparent that its intent was made under."""


class NewsRefusedError(Exception):
    """It does not fit what we know; nothing was changed."""


def known_attempt(cursor: Cursor[Any], attempt: UUID) -> Known | None:
    row = cursor.execute(_KNOWN, (attempt,)).fetchone()
    if row is None:
        return None
    id_, intent, method, *rest = row
    return Known(id_, intent, PaymentMethod(method), *rest)


def refuse_unless(fits: bool, provider: str, why: str) -> None:
    if not fits:
        NEWS.labels(provider, "refused").inc()
        raise NewsRefusedError(why)


@dataclass(frozen=True, slots=True)
class News:
    database: Database
    following: Following

    def take_in(self, known: Known, outcome: Outcome) -> Settled:
        """The same news again changes nothing."""
        with self.database.transaction() as connection:
            settled = settle_notified(connection, known.attempt, outcome)
            self.following.keep(connection, known.attempt, settled, ProviderAnswer(outcome))
        NEWS.labels(known.provider, "accepted").inc()
        count_settled(settled, known.method, known.provider)
        _log.info("attempt %s: %s says %s", known.attempt, known.provider, outcome.answer)
        return settled
