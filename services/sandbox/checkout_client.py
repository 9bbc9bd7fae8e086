"""A customer of the checkout without a browser: opens the page of an intent, submits its forms, awaits the result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.cookiejar import Cookie
from time import monotonic, sleep
from typing import Any
from urllib.parse import urljoin
from uuid import UUID

import requests
from requests.cookies import RequestsCookieJar

from services.sandbox.checkout_page import CheckoutPage, PageForm, parse_page
from services.sandbox.scripted_outcomes import RIGHT_CODES
from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod
from shared.platform.errors import RefusedError
from shared.platform.http_session import open_http_session
from shared.platform.strict_json import parse_json_object

WAIT_S = 60.0
"""Longer than it takes until the result of a payment that timed out is known."""
_TIMEOUT_S = 60
"""Longer than the checkout waits for a provider."""
_POLL_INTERVAL_S = 0.5
_NOT_FOUND = 404
_TEST_MODE = "test"
_WITH_ALERT = (422, 429)
"""The form again, with an alert that says what is wrong."""


class CheckoutUnavailableError(RefusedError):
    """The checkout does not respond, or does not work."""


class NotPaidError(RefusedError):
    """The intent cannot be paid, or the payment failed."""


class NotTestModeError(RefusedError):
    """The page does not say that its application is a test one. Nothing was submitted."""


class IntentNotFoundError(RefusedError):
    """The checkout does not know the intent."""


@dataclass(frozen=True, slots=True)
class Payment:
    """What a customer enters. Kept in memory only."""

    method: PaymentMethod
    fields: Mapping[str, str] = field(repr=False)
    code: str = field(repr=False)
    """Entered if the checkout asks for one."""

    @classmethod
    def by_card(
        cls, number: str, expiry: str = "12/40", security_code: str = "123", code: str | None = None
    ) -> "Payment":
        """Without a code, the right one is entered."""
        fields = {"card_number": number, "expiry": expiry, "security_code": security_code}
        return cls._by(PaymentMethod.CARD, fields, code)

    @classmethod
    def by_wallet(
        cls, method: PaymentMethod, phone: str, birth_year: str = "1999", code: str | None = None
    ) -> "Payment":
        """Without a code, the right one is entered."""
        return cls._by(method, {"phone": phone, "birth_year": birth_year}, code)

    @classmethod
    def _by(cls, method: PaymentMethod, fields: Mapping[str, str], code: str | None) -> "Payment":
        return cls(method, {"method": method.value, **fields}, code or RIGHT_CODES[method])


class _CookieJar(RequestsCookieJar):
    """Sends secure cookies without TLS, too.

    The checkout makes its cookies for its public address, and is reached without TLS in our own network.
    """

    def set_cookie(self, cookie: Cookie, *args: Any, **kwargs: Any) -> None:
        cookie.secure = False
        super().set_cookie(cookie, *args, **kwargs)


class CheckoutClient:
    def __init__(self, checkout_url: str, intent: UUID) -> None:
        self._checkout_url = checkout_url
        self._url = f"{checkout_url}/pay/{intent}"
        self._session = open_http_session()
        self._session.cookies = _CookieJar()

    def close(self) -> None:
        self._session.close()

    def pay(self, payment: Payment, wait_s: float) -> None:
        """Pay the intent. A result that is not known at once is waited for.

        Raises NotPaidError if it is not paid then, NotTestModeError, IntentNotFoundError and CheckoutUnavailableError.
        """
        page = self._submit(self._payment_form(payment.method), payment.fields)
        code_form = page.find_form("code")
        if code_form is not None and not page.alerts:
            page = self._submit(code_form, {"code": payment.code})
        status = self.wait_until(lambda status: status is not IntentStatus.PROCESSING, wait_s)
        if status is not IntentStatus.SUCCEEDED:
            raise NotPaidError(_explain_failure(status, page if page.alerts else self._open(), wait_s))

    def status(self) -> IntentStatus:
        response = self._request("GET", f"{self._url}/state")
        return IntentStatus(parse_json_object(response.content)["state"])

    def wait_until(self, is_reached: Callable[[IntentStatus], bool], wait_s: float) -> IntentStatus:
        """Wait for a status, but no longer than this. Return the last one."""
        deadline = monotonic() + wait_s
        while not is_reached(status := self.status()) and monotonic() < deadline:
            sleep(_POLL_INTERVAL_S)
        return status

    def _payment_form(self, method: PaymentMethod) -> PageForm:
        """Return the form with the choice of methods. Raises NotPaidError if there is none, or not this method.

        Raises NotTestModeError if a real provider could be reached.
        """
        page = self._open()
        if page.mode != _TEST_MODE:
            raise NotTestModeError("refused: this intent is not of a test application; nothing was submitted")
        form = page.find_form("method")
        if form is None:
            raise NotPaidError(_explain_refusal(self.status(), page))
        offered = form.choices["method"]
        if method not in offered:
            raise NotPaidError(f"not paid: this intent can only be paid by {', '.join(offered)}")
        return form

    def _open(self) -> CheckoutPage:
        """Open the page in English. `change`: choose a method again, even if a code was sent before."""
        return parse_page(self._request("GET", f"{self._url}?lang=en&change=1").text)

    def _submit(self, form: PageForm, fields: Mapping[str, str]) -> CheckoutPage:
        """Submit a form with its hidden fields. Return the page that follows."""
        url = urljoin(self._url, form.action)
        return parse_page(self._request("POST", url, {**form.hidden, **fields}).text)

    def _request(self, verb: str, url: str, fields: Mapping[str, str] | None = None) -> requests.Response:
        try:
            response = self._session.request(verb, url, data=fields, timeout=_TIMEOUT_S)
        except requests.RequestException as error:
            problem = f"cannot be reached ({type(error).__name__}): is the stack running?"
            raise CheckoutUnavailableError(f"the checkout at {self._checkout_url} {problem}") from None
        if response.status_code == _NOT_FOUND:
            raise IntentNotFoundError(f"the checkout at {self._checkout_url} does not know this intent")
        if not response.ok and response.status_code not in _WITH_ALERT:
            page = parse_page(response.text)
            problem = f"responded with {response.status_code}: {page.heading}. {page.notice}"
            raise CheckoutUnavailableError(f"the checkout at {self._checkout_url} {problem}")
        return response


def _explain_refusal(status: IntentStatus, page: CheckoutPage) -> str:
    """Return why the page has no form to pay."""
    match status:
        case IntentStatus.SUCCEEDED:
            return "not paid again: this intent is already paid"
        case IntentStatus.CANCELED:
            return "not paid: this intent has expired and is canceled"
        case IntentStatus.PROCESSING:
            return "not paid again: a payment of this intent is being confirmed"
        case IntentStatus.REQUIRES_PAYMENT_METHOD:  # it has just expired, or no method is available
            return f"not paid: {page.heading}. {page.notice}"


def _explain_failure(status: IntentStatus, page: CheckoutPage, wait_s: float) -> str:
    """Return why the payment failed, as the page says it."""
    if status is IntentStatus.PROCESSING:
        return f"the payment is still being confirmed after {wait_s:g} seconds; `mizan intent show` shows the result"
    return f"not paid: {' '.join(page.alerts) or f'{page.heading}. {page.notice}'}"
