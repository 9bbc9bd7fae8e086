"""Wrong one-time codes, recorded by our own code as the checkout does."""

from uuid import UUID

from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.settlement import settle_response
from shared.domain.attempts.start import start_attempt, submit_code
from shared.domain.attempts.states import MAX_CODE_TRIES, AttemptState, ProviderAnswer
from shared.platform.database.pool import Database


def enter_wrong_codes(database: Database, intent: UUID, count: int) -> UUID:
    """Start an attempt with a wallet, and enter so many wrong codes. Return the attempt."""
    with database.transaction() as connection:
        attempt = start_attempt(connection, intent, "adfali", "sandbox", AttemptState.AWAITING_CODE).attempt
    for number in range(1, count + 1):
        with database.transaction() as connection:
            request = submit_code(connection, attempt)
        is_last = number == MAX_CODE_TRIES
        answer = ProviderAnswer.DECLINED if is_last else ProviderAnswer.NEEDS_CODE
        reason = "too_many_codes" if is_last else "wrong_code"
        with database.transaction() as connection:
            settle_response(connection, request, AttemptOutcome(answer, reason, wrong_code=number))
    return attempt
