"""What is kept beside an attempt once it is settled, whoever brought the news: a challenge, a page, no phone."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.checkout.codes import Codes
from services.checkout.limits import Limits
from services.checkout.providers.port import ProviderAnswer, Wallet
from shared.domain.attempts.provider_exchange import Settled
from shared.domain.attempts.states import CHARGED, Answer, AttemptState

_KEEP_PAGE = """
insert into provider_pages (attempt_id, url) values (%s, %s) on conflict (attempt_id) do nothing"""


@dataclass(frozen=True, slots=True)
class Following:
    codes: Codes
    limits: Limits

    def keep(
        self,
        connection: Connection[Any],
        attempt: UUID,
        settled: Settled,
        answer: ProviderAnswer,
        wallet: Wallet | None = None,
    ) -> None:
        """In the transaction that settled it."""
        if settled.attempt is AttemptState.AWAITING_CODE and answer.outcome.answer is Answer.NEEDS_CODE:
            self.codes.open(connection, attempt, answer.continuation, wallet)
        elif settled.attempt is AttemptState.AWAITING_REDIRECT and answer.redirect_url is not None:
            connection.execute(_KEEP_PAGE, (attempt, answer.redirect_url))
        elif settled.attempt in CHARGED:
            phone = self.codes.forget_phone(connection, attempt)
            if phone is not None:
                self.limits.forget_phone(connection, phone)
