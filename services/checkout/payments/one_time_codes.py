"""One-time codes: the challenge of an attempt, its tries, its expiry and resending. The code itself is never stored."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from services.checkout.providers.interface import FailureReason, ProviderResponse, Wallet
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import MAX_CODE_TRIES, ProviderAnswer
from shared.platform.encryption import DecryptionError, KeysUnavailableError, SecretBox

_log = logging.getLogger(__name__)

VALID_S = 600
RESEND_AFTER_S = 60
_HINT_DIGITS = 3

_OPEN = """
insert into code_challenges (attempt_id, continuation, phone_hint, encrypted_phone, expires_at)
values (%(attempt)s, %(continuation)s, %(hint)s, %(encrypted)s, mizan_now() + make_interval(secs => %(valid)s))
on conflict (attempt_id) do nothing"""
CHALLENGE_COLUMNS = f"""c.attempt_id as challenged, c.continuation, c.phone_hint,
       c.encrypted_phone is not null as has_phone,
       c.codes_tried as tried, c.expires_at <= mizan_now() as code_expired,
       greatest(0, ceil(extract(epoch from c.sent_at - mizan_now()) + {RESEND_AFTER_S}))::integer
           as resend_in_s"""
_FIND = f"select {CHALLENGE_COLUMNS} from code_challenges as c where attempt_id = %s"
_TRY = "update code_challenges set codes_tried = codes_tried + 1 where attempt_id = %s"
_REFUND_TRY = "update code_challenges set codes_tried = codes_tried - 1 where attempt_id = %s"
_CLAIM_RESEND = """
update code_challenges set sent_at = mizan_now(), codes_sent = codes_sent + 1
where attempt_id = %(attempt)s and sent_at <= mizan_now() - make_interval(secs => %(pause)s)
returning encrypted_phone, continuation"""
_RELEASE_RESEND = """
update code_challenges set sent_at = mizan_now() - make_interval(secs => %s), codes_sent = codes_sent - 1
where attempt_id = %s"""
_RECORD_RESENT = """
update code_challenges set continuation = %(continuation)s,
    expires_at = mizan_now() + make_interval(secs => %(valid)s)
where attempt_id = %(attempt)s"""
_FIND_PHONE = (
    "select encrypted_phone from code_challenges where attempt_id = %s and encrypted_phone is not null"
)
_FORGET_PHONE = "update code_challenges set encrypted_phone = null where attempt_id = %s"


class CodeRefusedError(Exception):
    """The code is not sent to the provider, because it expired or there were too many tries."""

    def __init__(self, reason: FailureReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CodeChallenge:
    """A code that was sent for an attempt and that the customer has to enter."""

    attempt: UUID
    continuation: str | None
    phone_hint: str | None
    has_phone: bool
    """Whether we know the phone that the code is sent to. Of a card, only the bank does."""
    tried: int
    is_expired: bool
    resend_in_s: int

    @property
    def tries_left(self) -> int:
        return max(0, MAX_CODE_TRIES - self.tried)


@dataclass(frozen=True, slots=True)
class ClaimedResend:
    """A code that may be sent again now."""

    wallet: Wallet | None
    """None for a card."""
    continuation: str | None


def parse_challenge(found: Mapping[str, Any]) -> CodeChallenge | None:
    """Return the challenge of a row with CHALLENGE_COLUMNS, or None if it has none."""
    if found.get("challenged") is None:
        return None
    return CodeChallenge(
        attempt=found["challenged"],
        continuation=found["continuation"],
        phone_hint=found["phone_hint"],
        has_phone=found["has_phone"],
        tried=found["tried"],
        is_expired=found["code_expired"],
        resend_in_s=found["resend_in_s"],
    )


def number_wrong_code(answer: ProviderResponse, challenge: CodeChallenge) -> ProviderResponse:
    """Return the response with the number of the entry, if the provider says that the code is wrong."""
    if answer.outcome.reason != FailureReason.WRONG_CODE:
        return answer
    return replace(answer, outcome=replace(answer.outcome, wrong_code=challenge.tried))


def enforce_try_limit(answer: ProviderResponse, challenge: CodeChallenge | None) -> ProviderResponse:
    """Return a declined response instead of a request for another code if no tries are left."""
    needs_code = (
        answer.outcome.answer is ProviderAnswer.NEEDS_CODE
        and answer.outcome.reason != FailureReason.PROVIDER_AWAY
    )
    if not needs_code or challenge is None or challenge.tries_left > 0:
        return answer
    outcome = AttemptOutcome(
        ProviderAnswer.DECLINED, FailureReason.TOO_MANY_CODES, wrong_code=answer.outcome.wrong_code
    )
    return replace(answer, outcome=outcome)


class CodeChallenges:
    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def open(
        self, connection: Connection[Any], attempt: UUID, continuation: str | None, wallet: Wallet | None
    ) -> None:
        """Record that a code was sent: to the wallet's phone, or for a card to the phone that the bank knows."""
        connection.execute(
            _OPEN,
            {
                "attempt": attempt,
                "continuation": continuation,
                "hint": wallet and wallet.phone[-_HINT_DIGITS:],
                "encrypted": wallet and self._encrypt(attempt, wallet),
                "valid": VALID_S,
            },
        )

    def find(self, connection: Connection[Any], attempt: UUID) -> CodeChallenge | None:
        with connection.cursor(row_factory=dict_row) as cursor:
            return parse_challenge(cursor.execute(_FIND, (attempt,)).fetchone() or {})

    def count_try(self, connection: Connection[Any], attempt: UUID) -> CodeChallenge:
        """Count a try before the code is sent to the provider. The caller has locked the attempt.

        Raises CodeRefusedError if the code expired or no tries are left.
        """
        found = self.find(connection, attempt)
        if found is None or found.is_expired:
            raise CodeRefusedError(FailureReason.CODE_EXPIRED)
        if found.tries_left == 0:
            raise CodeRefusedError(FailureReason.TOO_MANY_CODES)
        connection.execute(_TRY, (attempt,))
        return replace(found, tried=found.tried + 1)

    def refund_try(self, connection: Connection[Any], attempt: UUID) -> None:
        """Undo a try whose code never reached the provider."""
        connection.execute(_REFUND_TRY, (attempt,))

    def claim_resend(self, connection: Connection[Any], attempt: UUID) -> ClaimedResend | None:
        """Return what to resend the code with, or None if it is too soon."""
        values = {"attempt": attempt, "pause": RESEND_AFTER_S}
        row = connection.execute(_CLAIM_RESEND, values).fetchone()
        if row is None:
            return None
        encrypted, continuation = row
        return ClaimedResend(encrypted and self._decrypt(attempt, encrypted), continuation)

    def release_resend(self, connection: Connection[Any], attempt: UUID) -> None:
        """Undo a claim because nothing was sent, so that the customer need not wait."""
        connection.execute(_RELEASE_RESEND, (RESEND_AFTER_S, attempt))

    def record_resent(self, connection: Connection[Any], attempt: UUID, continuation: str | None) -> None:
        values = {"attempt": attempt, "continuation": continuation, "valid": VALID_S}
        connection.execute(_RECORD_RESENT, values)

    def find_phone(self, connection: Connection[Any], attempt: UUID) -> str | None:
        row = connection.execute(_FIND_PHONE, (attempt,)).fetchone()
        if row is None:
            return None
        try:
            return self._decrypt(attempt, row[0]).phone
        except (DecryptionError, KeysUnavailableError) as error:
            # A payment must not fail because of data that is stored only for convenience.
            _log.error("%s", error)
            return None

    def forget_phone(self, connection: Connection[Any], attempt: UUID) -> str | None:
        """Delete the phone number and return it."""
        phone = self.find_phone(connection, attempt)
        connection.execute(_FORGET_PHONE, (attempt,))
        return phone

    def _encrypt(self, attempt: UUID, wallet: Wallet) -> str | None:
        """Return None if there is no key now: the provider has sent the code, and it can only not be sent again."""
        text = json.dumps([wallet.phone, wallet.birth_year])
        try:
            return self._box.encrypt(text, _encryption_context(attempt))
        except KeysUnavailableError as error:
            _log.error("the phone of attempt %s is not stored: %s", attempt, error)
            return None

    def _decrypt(self, attempt: UUID, encrypted: str) -> Wallet:
        return Wallet(*json.loads(self._box.decrypt(encrypted, _encryption_context(attempt))))


def _encryption_context(attempt: UUID) -> str:
    return f"code_challenge/{attempt}"
