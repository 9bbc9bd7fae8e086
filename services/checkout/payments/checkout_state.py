"""One look at all that a page shows of an intent, in one statement."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Cursor

from services.checkout.payments.one_time_codes import COLUMNS, CodeChallenge, parse_challenge
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod

# Of the attempts, the one that was paid, or the newest: a new one ends all that wait for the customer.
_LOAD = f"""
select i.uuid as intent, i.application_id as application, m.name as merchant, i.description, i.amount, i.currency,
       i.reference, i.return_url, i.trace, i.status, i.expires_at <= mizan_now() as is_expired,
       greatest(0, ceil(extract(epoch from i.expires_at - mizan_now())))::bigint as seconds_left,
       mizan_now() as now,
       array(select method from application_methods where application_id = i.application_id) as methods,
       t.id as attempt, t.state, t.method, t.reason, t.provider_account_id as account, t.updated_at,
       (select url from provider_pages where attempt_id = t.id) as provider_url,
       {COLUMNS}
from payment_intents as i
join applications as a on a.id = i.application_id
join merchants as m on m.id = a.merchant_id
left join lateral (
    select id, state, method, reason, provider_account_id, updated_at from payment_attempts
    where intent_uuid = i.uuid order by state = 'paid' desc, id desc limit 1
) as t on true
left join code_challenges as c on c.attempt_id = t.id
where i.uuid = %s"""

_INTENT_FIELDS = (
    "intent",
    "application",
    "merchant",
    "description",
    "amount",
    "currency",
    "reference",
    "return_url",
    "trace",
    "is_expired",
    "seconds_left",
    "now",
)
_STATE = "select status from payment_intents where uuid = %s"


@dataclass(frozen=True, slots=True)
class LastAttempt:
    id: UUID
    state: AttemptState
    method: PaymentMethod
    reason: str | None
    account: UUID | None
    updated_at: datetime
    provider_url: str | None
    challenge: CodeChallenge | None

    @property
    def can_continue(self) -> bool:
        """Where it awaits the customer: whether they can do what it awaits."""
        return self.challenge is not None or self.provider_url is not None


@dataclass(frozen=True, slots=True)
class CheckoutState:
    """An intent as its customer finds it."""

    intent: UUID
    application: UUID
    merchant: str
    description: str | None
    amount: int
    currency: str
    reference: str
    return_url: str | None
    trace: str | None
    """The traceparent that it was made under."""
    status: IntentStatus
    is_expired: bool
    seconds_left: int
    now: datetime
    """By the database's clock."""
    methods: frozenset[PaymentMethod]
    """Those that the application has enabled."""
    attempt: LastAttempt | None


def load_checkout_state(cursor: Cursor[Any], intent: UUID) -> CheckoutState | None:
    row = cursor.execute(_LOAD, (intent,)).fetchone()
    if row is None or cursor.description is None:
        return None
    row_by_name = dict(zip((column.name for column in cursor.description), row, strict=True))
    fields = {name: row_by_name[name] for name in _INTENT_FIELDS}
    return CheckoutState(
        **fields,
        status=IntentStatus(row_by_name["status"]),
        methods=frozenset(map(PaymentMethod, row_by_name["methods"])),
        attempt=None if row_by_name["attempt"] is None else _attempt(row_by_name),
    )


def find_intent_status(cursor: Cursor[Any], intent: UUID) -> IntentStatus | None:
    row = cursor.execute(_STATE, (intent,)).fetchone()
    return None if row is None else IntentStatus(row[0])


def _attempt(row_by_name: dict[str, Any]) -> LastAttempt:
    return LastAttempt(
        id=row_by_name["attempt"],
        state=AttemptState(row_by_name["state"]),
        method=PaymentMethod(row_by_name["method"]),
        reason=row_by_name["reason"],
        account=row_by_name["account"],
        updated_at=row_by_name["updated_at"],
        provider_url=row_by_name["provider_url"],
        challenge=parse_challenge(row_by_name),
    )
