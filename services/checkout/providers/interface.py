"""The port that every provider is reached through: three verbs, and what comes back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.payment_methods import PaymentMethod


class FailureReason(StrEnum):
    """Why money was not taken, or why a code is asked for once more. The page has a sentence for each."""

    DECLINED = "declined"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    NOT_SUBSCRIBED = "not_subscribed"
    WRONG_PHONE = "wrong_phone"
    WRONG_PHONE_OR_BIRTH_YEAR = "wrong_phone_or_birth_year"
    WRONG_CODE = "wrong_code"
    CODE_EXPIRED = "code_expired"
    TOO_MANY_CODES = "too_many_codes"
    WAIT_BEFORE_NEXT_CODE = "wait_before_next_code"
    AMOUNT_NOT_ALLOWED = "amount_not_allowed"
    ACCOUNT_TROUBLE = "account_trouble"
    LEFT_BY_CUSTOMER = "left_by_customer"
    PROVIDER_AWAY = "provider_away"


@dataclass(frozen=True, slots=True)
class PaymentRequest:
    """What is paid. The attempt's id is the idempotency key: a provider that sees it twice charges once."""

    attempt: UUID
    intent: UUID
    method: PaymentMethod
    amount: int
    """Minor units."""
    currency: str
    lang: str
    """The customer's language, where the provider shows a page of its own."""
    is_past_deadline: Callable[[], bool] = field(compare=False)
    """Whether others take the request for lost by now, so that it must not be sent any more."""


@dataclass(frozen=True, slots=True)
class Card:
    """Lives in memory for one request."""

    number: str = field(repr=False)
    expiry_month: int = field(repr=False)
    expiry_year: int = field(repr=False)
    security_code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wallet:
    phone: str = field(repr=False)
    """As 09xxxxxxxx."""
    birth_year: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    outcome: AttemptOutcome
    continuation: str | None = None
    """What it wants to see again beside the code; only with needs_code."""
    redirect_url: str | None = None
    """Only with needs_redirect."""


@dataclass(frozen=True, slots=True)
class SubmittedCode:
    code: str = field(repr=False)
    continuation: str | None
    number: int
    """Counts the requests of this attempt that may charge: a repeat of one number is the same request."""


class Provider(Protocol):
    """An adapter with the credentials of one account. Never raises for what a provider does or fails to do."""

    name: str

    def initial_state(self, method: PaymentMethod) -> AttemptState:
        """How an attempt begins: sent, where starting it may charge; awaiting a code or a redirect otherwise."""

    def accepts_amount(self, amount: int) -> bool:
        """Whether it can charge exactly that much."""

    def start(self, payment: PaymentRequest, details: Card | Wallet | None) -> ProviderResponse:
        """Charges a card, sends a code to a phone (again, where it was before), or opens a page of its own."""

    def confirm(self, payment: PaymentRequest, entered: SubmittedCode) -> ProviderResponse: ...

    def status(self, payment: PaymentRequest) -> ProviderResponse:
        """What became of it."""


def build_response(
    answer: ProviderAnswer,
    reason: FailureReason | None = None,
    reference: str | None = None,
    *,
    can_inquire: bool = True,
) -> ProviderResponse:
    return ProviderResponse(AttemptOutcome(answer, reason, reference, can_inquire))
