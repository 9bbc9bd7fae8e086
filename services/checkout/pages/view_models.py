"""Which page a customer sees, from how the intent and its last attempt stand. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from shared.domain.attempts.states import AttemptState
from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod


class PageKind(StrEnum):
    READY = "ready"
    CODE = "code"
    REDIRECT_OPEN = "redirect_open"
    PROCESSING = "processing"
    PAID = "paid"
    EXPIRED = "expired"


_PAGE_OF_STATUS = {
    IntentStatus.SUCCEEDED: PageKind.PAID,
    IntentStatus.PROCESSING: PageKind.PROCESSING,
    IntentStatus.CANCELED: PageKind.EXPIRED,
}

_PAGE_OF_ATTEMPT = {
    AttemptState.AWAITING_CODE: PageKind.CODE,
    AttemptState.AWAITING_REDIRECT: PageKind.REDIRECT_OPEN,
}


def select_page(
    status: IntentStatus,
    *,
    is_expired: bool,
    attempt: AttemptState | None,
    can_continue: bool,
    wants_change: bool,
) -> PageKind:
    """`can_continue`: a code was sent, or the address of the provider's page is known; a crash can come before that.

    `wants_change`: the customer would rather pay in another way.
    """
    if status in _PAGE_OF_STATUS:
        return _PAGE_OF_STATUS[status]
    if is_expired:
        return PageKind.EXPIRED
    if attempt is None or wants_change or not can_continue:
        return PageKind.READY
    return _PAGE_OF_ATTEMPT.get(attempt, PageKind.READY)


@dataclass(frozen=True, slots=True)
class IntentSummary:
    """What every page of an intent shows."""

    merchant: str
    description: str | None
    amount: str
    """With the currency, in the reader's way."""
    reference: str
    """In capitals."""
    return_url: str | None
    seconds_left: int
    """Until the checkout stops taking payments."""
    url: str
    """This page in this language; where the payment form goes."""
    state_url: str
    """Tells scripts in which state the intent is."""


@dataclass(frozen=True, slots=True)
class MethodChoice:
    method: PaymentMethod
    label: str
    has_fields: bool
    """False: the customer enters everything on the provider's own page."""


@dataclass(frozen=True, slots=True)
class PaymentForm:
    choices: Sequence[MethodChoice]
    chosen: PaymentMethod
    errors: Mapping[str, str] = field(default_factory=dict)
    """Field → sentence: method, card_number, expiry, security_code, phone, birth_year."""
    phone: str = ""
    birth_year: str = ""
    failure: str | None = None
    """Why the last attempt failed, or why this one cannot begin."""
    leaves_redirect: bool = False
    """Sending it gives up what the customer may be paying on a provider's page."""


@dataclass(frozen=True, slots=True)
class CodeForm:
    url: str
    """Where the code goes."""
    attempt: UUID
    method_label: str
    length: int
    phone_hint: str | None
    """The last digits of the phone the code was sent to; None where the bank knows it."""
    resend_url: str | None
    """None: it cannot be sent again."""
    resend_in_s: int
    change_url: str
    """Back to the choice of methods."""
    tries_left: int
    error: str | None = None
    """What is wrong with the code."""
    notice: str | None = None
    """What is to be said besides."""


@dataclass(frozen=True, slots=True)
class OpenRedirect:
    """The customer was sent to a provider's page and has not come back."""

    provider_url: str
    change_url: str


@dataclass(frozen=True, slots=True)
class ExpiredNotice:
    may_be_paid: bool
    """The customer was sent to a provider's page, and may have paid there."""


@dataclass(frozen=True, slots=True)
class Receipt:
    paid_at: str
    """In the reader's way, time of Libya."""
    method_label: str
    redirects: bool
    """Whether the customer has just paid and is taken on to the merchant by itself."""


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """A page for what is no payment: an unknown link, an error, a server that does not answer."""

    title: str
    text: str
    retry_url: str | None = None
