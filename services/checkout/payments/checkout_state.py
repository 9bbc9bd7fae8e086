"""An intent with its last attempt, as the payment page needs it, loaded in one query."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Cursor
from psycopg.rows import dict_row

from services.checkout.payments.one_time_codes import CHALLENGE_COLUMNS, CodeChallenge, parse_challenge
from shared.domain.applications.modes import ApplicationMode
from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod

# Of all attempts, the paid one or the newest: a new attempt ends all that wait for the customer.
_LOAD = f"""
select i.uuid as intent, i.application_id as application, a.mode, m.name as merchant, a.public_name_ar,
       a.public_name_en, i.description, i.amount, i.currency,
       i.reference, i.return_url, i.trace, i.status, i.expires_at, i.expires_at <= mizan_now() as is_expired,
       greatest(0, ceil(extract(epoch from i.expires_at - mizan_now())))::bigint as seconds_left,
       mizan_now() as now,
       array(select method from application_methods where application_id = i.application_id) as methods,
       t.id as attempt, t.state, t.method, t.reason, t.provider_account_id as account, t.updated_at,
       (select url from provider_pages where attempt_id = t.id) as provider_url,
       {CHALLENGE_COLUMNS}
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
    "public_name_ar",
    "public_name_en",
    "description",
    "amount",
    "currency",
    "reference",
    "return_url",
    "trace",
    "expires_at",
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
        """Whether the customer can continue an attempt that awaits them: a code was sent, or the page is known."""
        return self.challenge is not None or self.provider_url is not None


@dataclass(frozen=True, slots=True)
class CheckoutState:
    """An intent with what its payment page shows."""

    intent: UUID
    application: UUID
    mode: ApplicationMode
    merchant: str
    public_name_ar: str | None
    public_name_en: str | None
    description: str | None
    amount: int
    currency: str
    reference: str
    return_url: str | None
    trace: str | None
    """The traceparent of the request that created the intent."""
    status: IntentStatus
    expires_at: datetime
    is_expired: bool
    seconds_left: int
    now: datetime
    """By the database's clock."""
    methods: frozenset[PaymentMethod]
    """Methods that the application has enabled."""
    attempt: LastAttempt | None

    def shown_name(self, lang: str) -> str:
        """Return who is paid: the application's public name in this language, or else the merchant's name."""
        return (self.public_name_en if lang == "en" else self.public_name_ar) or self.merchant


def load_checkout_state(cursor: Cursor[Any], intent: UUID) -> CheckoutState | None:
    """Return the state, or None if there is no such intent."""
    with cursor.connection.cursor(row_factory=dict_row) as rows:
        values = rows.execute(_LOAD, (intent,)).fetchone()
    if values is None:
        return None
    fields = {name: values[name] for name in _INTENT_FIELDS}
    return CheckoutState(
        **fields,
        mode=ApplicationMode(values["mode"]),
        status=IntentStatus(values["status"]),
        methods=frozenset(map(PaymentMethod, values["methods"])),
        attempt=None if values["attempt"] is None else _attempt(values),
    )


def find_intent_status(cursor: Cursor[Any], intent: UUID) -> IntentStatus | None:
    row = cursor.execute(_STATE, (intent,)).fetchone()
    return None if row is None else IntentStatus(row[0])


def _attempt(values: dict[str, Any]) -> LastAttempt:
    return LastAttempt(
        id=values["attempt"],
        state=AttemptState(values["state"]),
        method=PaymentMethod(values["method"]),
        reason=values["reason"],
        account=values["account"],
        updated_at=values["updated_at"],
        provider_url=values["provider_url"],
        challenge=parse_challenge(values),
    )
