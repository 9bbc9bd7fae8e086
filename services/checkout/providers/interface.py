"""The interface that every payment provider implements: start, confirm, status, and what they return. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.payment_methods import PaymentMethod

_MAX_REFERENCE_LENGTH = 255


class FailureReason(StrEnum):
    """Why the customer was not charged, or why another code is needed. pages/labels.py has a text for each."""

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
    """What to pay. The id of the attempt is the idempotency key: a provider that receives it twice charges once."""

    attempt: UUID
    intent: UUID
    method: PaymentMethod
    amount: int
    """Minor units."""
    currency: str
    lang: str
    """The customer's language, for providers with a payment page."""
    is_past_deadline: Callable[[], bool] = field(compare=False)
    """Returns whether it is too late to send the request, because other processes now consider it lost."""


@dataclass(frozen=True, slots=True)
class Card:
    """Kept in memory for one request only."""

    number: str = field(repr=False)
    expiry_month: int = field(repr=False)
    expiry_year: int = field(repr=False)
    security_code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Wallet:
    phone: str = field(repr=False)
    """In the form 09xxxxxxxx."""
    birth_year: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ProviderResponse:
    outcome: AttemptOutcome
    continuation: str | None = None
    """Token that the provider expects together with the code. Only with needs_code."""
    redirect_url: str | None = None
    """Only with needs_redirect."""


@dataclass(frozen=True, slots=True)
class SubmittedCode:
    code: str = field(repr=False)
    continuation: str | None
    number: int
    """Number of the request among those of this attempt that may charge. A repeated number is the same request."""


class UntrustedNotificationError(Exception):
    """A notification is not signed by the provider or is malformed. The text quotes nothing of it."""


def is_storable_reference(reference: object) -> bool:
    """Return whether a provider's reference is text that the database can store and a person can read."""
    return (
        isinstance(reference, str)
        and bool(reference.strip())
        and reference.isprintable()
        and len(reference) <= _MAX_REFERENCE_LENGTH
    )


class Provider(Protocol):
    """A provider with the credentials of one account. It reports failures of the provider as responses, not errors."""

    name: str

    def initial_state(self, method: PaymentMethod) -> AttemptState:
        """Return the first state of an attempt: sent if starting it may charge, else awaiting a code or a redirect."""

    def accepts_amount(self, amount: int) -> bool:
        """Return whether the provider can charge exactly this amount."""

    def start(self, payment: PaymentRequest, details: Card | Wallet | None) -> ProviderResponse:
        """Charge a card, send a code to a phone (again if repeated), or open the provider's payment page."""

    def can_resend_code(self, method: PaymentMethod) -> bool:
        """Return whether a code can be sent again: without the card, which is not stored."""

    def resend_code(
        self, payment: PaymentRequest, continuation: str | None, wallet: Wallet | None
    ) -> ProviderResponse:
        """Send the code again: to the wallet, or without one for the card that `continuation` stands for.

        This charges nothing. Only if `can_resend_code`.
        """

    def confirm(self, payment: PaymentRequest, entered: SubmittedCode) -> ProviderResponse:
        """Confirm the payment with the code that the customer entered. This may charge."""

    def status(self, payment: PaymentRequest) -> ProviderResponse:
        """Ask the provider for the outcome of the attempt."""


def build_response(
    answer: ProviderAnswer,
    reason: FailureReason | None = None,
    reference: str | None = None,
    *,
    can_inquire: bool = True,
) -> ProviderResponse:
    return ProviderResponse(AttemptOutcome(answer, reason, reference, can_inquire))
