"""Which page a customer sees, and the values that its template shows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from shared.domain.applications.modes import ApplicationMode
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
    """Return the page for an intent and its last attempt.

    `can_continue`: a code was sent, or the URL of the provider's page is known. After a crash it may be false.
    `wants_change`: the customer wants to choose another method.
    """
    if status in _PAGE_OF_STATUS:
        return _PAGE_OF_STATUS[status]
    if is_expired:
        return PageKind.EXPIRED
    if attempt is None or wants_change or not can_continue:
        return PageKind.READY
    return _PAGE_OF_ATTEMPT.get(attempt, PageKind.READY)


class TimeShown(StrEnum):
    """How a page shows when the intent expires."""

    NONE = "none"
    END = "end"
    """The time of day. The script changes it to a countdown in the last hour."""
    COUNTDOWN = "countdown"


_COUNTDOWN_S = 3600
_WHOLE_DESCRIPTION = 160
_DESCRIPTION_START = 110


def select_time_shown(seconds_left: int) -> TimeShown:
    if seconds_left <= 0:
        return TimeShown.NONE
    return TimeShown.COUNTDOWN if seconds_left <= _COUNTDOWN_S else TimeShown.END


def description_start(description: str | None) -> str | None:
    """Return the first words of a description that is too long to be shown whole, else None."""
    if description is None or len(description) <= _WHOLE_DESCRIPTION:
        return None
    return description[: _DESCRIPTION_START - 1].rsplit(" ", 1)[0] + "…"


def format_clock(seconds: int) -> str:
    """Return minutes and seconds, such as 12:05."""
    return f"{seconds // 60}:{seconds % 60:02}"


@dataclass(frozen=True, slots=True)
class IntentSummary:
    """What every page of an intent shows.

    Templates may test whether a value is there, and print it. The payment form is prerendered, so they can do no more
    with any of them but `mode` and `time_shown`.
    """

    mode: ApplicationMode
    merchant: str
    """The application's public name in this language, or the merchant's name."""
    initial: str
    """The first letter of that name, in upper case."""
    description: str | None
    description_start: str | None
    """Its first words, if it is too long to be shown whole."""
    amount: str
    """With the currency, formatted for the language."""
    reference: str
    """In upper case."""
    return_url: str | None
    seconds_left: int
    """Seconds until the intent expires."""
    time_left: str
    """The same as minutes and seconds."""
    time_shown: TimeShown
    expires_at: str
    """Formatted for the language, in Libyan time."""
    url: str
    """URL of this page in this language, which is also the action of the payment form."""
    state_url: str
    """URL that returns the status of the intent to scripts."""


@dataclass(frozen=True, slots=True)
class MethodChoice:
    method: PaymentMethod
    label: str
    has_fields: bool
    """False if the customer enters everything on the provider's page."""
    prefixes: Sequence[str] = ()
    """The first digits of the phone numbers that a wallet takes."""
    prefix_error: str = ""
    """What to say about a phone number that it does not take."""


@dataclass(frozen=True, slots=True)
class PaymentForm:
    choices: Sequence[MethodChoice]
    chosen: PaymentMethod
    errors: Mapping[str, str] = field(default_factory=dict)
    """Error messages by field: method, card_number, expiry, security_code, phone, birth_year."""
    phone: str = ""
    birth_year: str = ""
    failure: str | None = None
    """Why the last attempt failed, or why this one cannot start."""
    leaves_redirect: bool = False
    """Whether submitting the form abandons an attempt on a provider's page."""


@dataclass(frozen=True, slots=True)
class CodeForm:
    url: str
    """Action of the form."""
    attempt: UUID
    method_label: str
    length: int
    phone_hint: str | None
    """Last digits of the phone that received the code. None if only the bank knows the phone."""
    resend_url: str | None
    """None if the code cannot be sent again."""
    resend_in_s: int
    resend_in: str
    """The same as minutes and seconds."""
    change_url: str
    """URL of the choice of methods."""
    is_card: bool
    tries_left: int
    error: str | None = None
    """What is wrong with the code."""
    notice: str | None = None
    """Another message, such as that a new code was sent."""


@dataclass(frozen=True, slots=True)
class OpenRedirect:
    """The customer was redirected to a provider's page and has not returned."""

    provider_url: str
    change_url: str


@dataclass(frozen=True, slots=True)
class ExpiredNotice:
    may_be_paid: bool
    """The customer was redirected to a provider's page and may have paid there."""


@dataclass(frozen=True, slots=True)
class Receipt:
    paid_at: str
    """Formatted for the language, in Libyan time."""
    method_label: str
    redirects: bool
    """Whether the customer has just paid and is redirected to the merchant automatically."""


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """A page without a payment: an unknown link, an error, an unavailable service."""

    title: str
    text: str
    retry_url: str | None = None
