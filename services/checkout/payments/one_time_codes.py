"""One-time codes: whom one was sent to, how often one was tried, and until when. Never the code itself."""

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
from shared.domain.attempts.states import ProviderAnswer
from shared.platform.encryption import DecryptionError, SecretBox

_log = logging.getLogger(__name__)

MAX_TRIES = 5
VALID_S = 600
RESEND_AFTER_S = 60
_HINT_DIGITS = 3

_OPEN = """
insert into code_challenges (attempt_id, continuation, phone_hint, encrypted_phone, expires_at)
values (%(attempt)s, %(continuation)s, %(hint)s, %(sealed)s, mizan_now() + make_interval(secs => %(valid)s))
on conflict (attempt_id) do nothing"""
COLUMNS = f"""c.attempt_id as challenged, c.continuation, c.phone_hint, c.encrypted_phone is not null as can_resend,
       c.codes_tried as tried, c.expires_at <= mizan_now() as code_expired,
       greatest(0, ceil(extract(epoch from c.sent_at - mizan_now()) + {RESEND_AFTER_S}))::integer
           as resend_in_s"""
_FIND = f"select {COLUMNS} from code_challenges as c where attempt_id = %s"
_TRY = "update code_challenges set codes_tried = codes_tried + 1 where attempt_id = %s"
_GIVE_BACK_TRY = "update code_challenges set codes_tried = codes_tried - 1 where attempt_id = %s"
_CLAIM_SENDING = """
update code_challenges set sent_at = mizan_now(), codes_sent = codes_sent + 1
where attempt_id = %(attempt)s and encrypted_phone is not null
  and sent_at <= mizan_now() - make_interval(secs => %(pause)s)
returning encrypted_phone"""
_GIVE_BACK_SENDING = """
update code_challenges set sent_at = mizan_now() - make_interval(secs => %s), codes_sent = codes_sent - 1
where attempt_id = %s"""
_SENT_AGAIN = """
update code_challenges set continuation = %(continuation)s,
    expires_at = mizan_now() + make_interval(secs => %(valid)s)
where attempt_id = %(attempt)s"""
_PHONE = "select encrypted_phone from code_challenges where attempt_id = %s and encrypted_phone is not null"
_FORGET_PHONE = "update code_challenges set encrypted_phone = null where attempt_id = %s"


class CodeRefusedError(Exception):
    """The code does not go to the provider."""

    def __init__(self, reason: FailureReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CodeChallenge:
    attempt: UUID
    continuation: str | None
    phone_hint: str | None
    can_resend: bool
    tried: int
    is_expired: bool
    resend_in_s: int

    @property
    def tries_left(self) -> int:
        return max(0, MAX_TRIES - self.tried)


def parse_challenge(found: Mapping[str, Any]) -> CodeChallenge | None:
    """In a row with COLUMNS; None where there is none."""
    if found.get("challenged") is None:
        return None
    return CodeChallenge(
        attempt=found["challenged"],
        continuation=found["continuation"],
        phone_hint=found["phone_hint"],
        can_resend=found["can_resend"],
        tried=found["tried"],
        is_expired=found["code_expired"],
        resend_in_s=found["resend_in_s"],
    )


def enforce_try_limit(answer: ProviderResponse, challenge: CodeChallenge | None) -> ProviderResponse:
    """The fifth wrong code ends the attempt."""
    needs_code = (
        answer.outcome.answer is ProviderAnswer.NEEDS_CODE
        and answer.outcome.reason != FailureReason.PROVIDER_AWAY
    )
    if not needs_code or challenge is None or challenge.tries_left > 0:
        return answer
    return replace(answer, outcome=AttemptOutcome(ProviderAnswer.DECLINED, FailureReason.TOO_MANY_CODES))


class CodeChallenges:
    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def open(
        self, connection: Connection[Any], attempt: UUID, continuation: str | None, wallet: Wallet | None
    ) -> None:
        """A code was sent: to this wallet's phone, or (a card's) to whatever phone the bank knows."""
        connection.execute(
            _OPEN,
            {
                "attempt": attempt,
                "continuation": continuation,
                "hint": wallet and wallet.phone[-_HINT_DIGITS:],
                "sealed": wallet and self._seal(attempt, wallet),
                "valid": VALID_S,
            },
        )

    def find(self, connection: Connection[Any], attempt: UUID) -> CodeChallenge | None:
        with connection.cursor(row_factory=dict_row) as cursor:
            return parse_challenge(cursor.execute(_FIND, (attempt,)).fetchone() or {})

    def count_try(self, connection: Connection[Any], attempt: UUID) -> CodeChallenge:
        """Counted before the code is sent, and the attempt is locked by the caller: five at most, whoever races."""
        found = self.find(connection, attempt)
        if found is None or found.is_expired:
            raise CodeRefusedError(FailureReason.CODE_EXPIRED)
        if found.tries_left == 0:
            raise CodeRefusedError(FailureReason.TOO_MANY_CODES)
        connection.execute(_TRY, (attempt,))
        return replace(found, tried=found.tried + 1)

    def refund_try(self, connection: Connection[Any], attempt: UUID) -> None:
        """It never reached the provider."""
        connection.execute(_GIVE_BACK_TRY, (attempt,))

    def claim_resend(self, connection: Connection[Any], attempt: UUID) -> Wallet | None:
        """Whom to send it to again; None when it is too soon, or there is nobody."""
        values = {"attempt": attempt, "pause": RESEND_AFTER_S}
        row = connection.execute(_CLAIM_SENDING, values).fetchone()
        return None if row is None else self._unseal(attempt, row[0])

    def release_resend(self, connection: Connection[Any], attempt: UUID) -> None:
        """Nothing was sent, so nobody has to wait for it."""
        connection.execute(_GIVE_BACK_SENDING, (RESEND_AFTER_S, attempt))

    def record_resent(self, connection: Connection[Any], attempt: UUID, continuation: str | None) -> None:
        values = {"attempt": attempt, "continuation": continuation, "valid": VALID_S}
        connection.execute(_SENT_AGAIN, values)

    def find_phone(self, connection: Connection[Any], attempt: UUID) -> str | None:
        row = connection.execute(_PHONE, (attempt,)).fetchone()
        if row is None:
            return None
        try:
            return self._unseal(attempt, row[0]).phone
        except DecryptionError as error:
            # A payment must not fail for what is kept for convenience.
            _log.error("%s", error)
            return None

    def forget_phone(self, connection: Connection[Any], attempt: UUID) -> str | None:
        """The phone, one last time."""
        phone = self.find_phone(connection, attempt)
        connection.execute(_FORGET_PHONE, (attempt,))
        return phone

    def _seal(self, attempt: UUID, wallet: Wallet) -> str:
        return self._box.encrypt(json.dumps([wallet.phone, wallet.birth_year]), _purpose(attempt))

    def _unseal(self, attempt: UUID, sealed: str) -> Wallet:
        return Wallet(*json.loads(self._box.decrypt(sealed, _purpose(attempt))))


def _purpose(attempt: UUID) -> str:
    return f"code_challenge/{attempt}"
