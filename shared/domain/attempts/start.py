"""Starts attempts and submits codes, in the caller's transaction.

The provider is called between two transactions: start or submit, commit, call the provider, settle.
"""

from collections.abc import Callable, Collection
from time import monotonic
from typing import Any
from uuid import UUID

from psycopg import Connection

from shared.domain.attempts.provider_exchange import ProviderRequest
from shared.domain.attempts.settlement import LockedAttempt, lock_attempt
from shared.domain.attempts.states import ANSWER_TIMEOUT, FIRST_INQUIRY_AFTER, AttemptState
from shared.domain.intents import store as intents
from shared.domain.intents.states import IntentStatus, IntentTrigger
from shared.platform.database.pool import fetch_scalar


class AttemptRefusedError(Exception):
    """The customer cannot pay like this now. Nothing was changed."""


class AlreadyPaidError(AttemptRefusedError):
    """The intent is paid: show the receipt."""


class IntentExpiredError(AttemptRefusedError):
    """The intent has expired: show the way back to the merchant."""


class AttemptInFlightError(AttemptRefusedError):
    """Another attempt may be charging: show that the payment is being confirmed."""


class RedirectOpenError(AttemptRefusedError):
    """The customer may be paying on a provider's page: ask them first."""


class NotAwaitingCodeError(AttemptRefusedError):
    """The attempt does not wait for a code, or no longer: show its current state."""


def check_payable(intent: IntentStatus, is_expired: Callable[[], bool]) -> None:
    """Raise an AttemptRefusedError unless the intent can be paid now. Pure, except for `is_expired`.

    `is_expired` says whether `expires_at` has passed. It is called only if the status does not decide.
    """
    if intent is IntentStatus.SUCCEEDED:
        raise AlreadyPaidError
    if intent is IntentStatus.PROCESSING:
        raise AttemptInFlightError
    if intent is IntentStatus.CANCELED or is_expired():
        raise IntentExpiredError


def check_replaceable(awaiting: Collection[AttemptState], *, leave_redirect: bool) -> None:
    """Raise RedirectOpenError if one of the attempts that await the customer must not be replaced. Pure."""
    if AttemptState.AWAITING_REDIRECT in awaiting and not leave_redirect:
        raise RedirectOpenError


def check_awaits_code(state: AttemptState) -> None:
    """Raise NotAwaitingCodeError unless the attempt awaits a code. Pure."""
    if state is not AttemptState.AWAITING_CODE:
        raise NotAwaitingCodeError


_AWAITING = "state in ('awaiting_code', 'awaiting_redirect')"

_FIND_AWAITING = f"select state from payment_attempts where intent_uuid = %s and {_AWAITING}"
_ABANDON = f"""
update payment_attempts set state = 'abandoned', updated_at = mizan_now() where intent_uuid = %s and {_AWAITING}"""

_INSERT = """
insert into payment_attempts (intent_uuid, method, provider, provider_account_id, state,
                              provider_requests, sent_at, next_verify_at)
values (%(intent)s, %(method)s, %(provider)s, %(account)s, %(state)s,
        case when %(state)s = 'sent' then 1 else 0 end,
        case when %(state)s = 'sent' then mizan_now() end,
        case when %(state)s = 'sent' then mizan_now() + %(inquiry_after)s end)
returning id, provider_requests"""
_SEND = """
update payment_attempts
set state = 'sent', provider_requests = provider_requests + 1, sent_at = mizan_now(),
    next_verify_at = mizan_now() + %(inquiry_after)s,
    verifications = 0, reason = null, updated_at = mizan_now()
where id = %(attempt)s returning provider_requests"""


def start_attempt(
    connection: Connection[Any],
    intent: UUID,
    method: str,
    provider: str,
    state: AttemptState,
    *,
    account: UUID | None = None,
    leave_redirect: bool = False,
) -> ProviderRequest:
    """Insert an attempt in `state`: sent if starting it may charge, awaiting if the customer has to act first.

    It replaces an attempt that awaits a code and, only with `leave_redirect`, one on a provider's page.
    Raises an AttemptRefusedError if the intent cannot be paid now.
    """
    status = intents.lock_intent(connection, intent)
    check_payable(status, lambda: intents.is_expired(connection, intent))
    awaiting = [AttemptState(row[0]) for row in connection.execute(_FIND_AWAITING, (intent,))]
    check_replaceable(awaiting, leave_redirect=leave_redirect)
    if awaiting:
        connection.execute(_ABANDON, (intent,))
    values = {
        "intent": intent,
        "method": method,
        "provider": provider,
        "account": account,
        "state": state,
        "inquiry_after": FIRST_INQUIRY_AFTER,
    }
    send_deadline = _send_deadline()
    row = connection.execute(_INSERT, values).fetchone()
    assert row is not None
    if state is AttemptState.SENT:
        intents.apply_trigger(connection, intent, IntentTrigger.ATTEMPT_SENT)
    return ProviderRequest(UUID(str(row[0])), row[1], send_deadline)


def submit_code(connection: Connection[Any], attempt: UUID) -> ProviderRequest:
    """Mark the attempt as sent because the customer entered a code. Commit, then send the code to the provider.

    Raises an AttemptRefusedError if the intent cannot be paid now or the attempt does not await a code.
    """
    found = _lock_awaiting_code(connection, attempt)
    send_deadline = _send_deadline()
    number = fetch_scalar(connection, _SEND, {"attempt": attempt, "inquiry_after": FIRST_INQUIRY_AFTER})
    intents.apply_trigger(connection, found.intent, IntentTrigger.ATTEMPT_SENT)
    return ProviderRequest(attempt, number, send_deadline)


def repeat_start(connection: Connection[Any], attempt: UUID) -> ProviderRequest:
    """Prepare to start the attempt again because the customer received no code. This charges nothing.

    Raises an AttemptRefusedError if the intent cannot be paid now or the attempt does not await a code.
    """
    found = _lock_awaiting_code(connection, attempt)
    return ProviderRequest(attempt, found.provider_requests, _send_deadline())


def _lock_awaiting_code(connection: Connection[Any], attempt: UUID) -> LockedAttempt:
    found = lock_attempt(connection, attempt)
    check_payable(found.intent_status, lambda: intents.is_expired(connection, found.intent))
    check_awaits_code(found.state)
    return found


def _send_deadline() -> float:
    """Return the deadline for sending. Call it before the database records when the request was sent."""
    return monotonic() + ANSWER_TIMEOUT.total_seconds()
