"""Plutu, a Libyan payment aggregator: wallets confirm with a code, cards pay on Plutu's page.

Plutu has no status inquiry. An operator decides attempts with an unknown outcome.
"""

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from services.checkout.providers.http_client import HttpReply, NoResponseError, NotSentError, ProviderClient
from services.checkout.providers.interface import (
    Card,
    FailureReason,
    PaymentRequest,
    ProviderResponse,
    SubmittedCode,
    Wallet,
    build_response,
    is_storable_reference,
)
from services.checkout.providers.plutu_notifications import invoice_number
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.payment_methods import PaymentMethod

_log = logging.getLogger(__name__)

_GATEWAYS = {PaymentMethod.SADAD: "sadadapi", PaymentMethod.ADFALI: "edfali"}

# Plutu misspells some codes. The correct spelling is listed too, in case they fix it.
_CODE_ERRORS = {
    "INVLIAD_OTP": FailureReason.WRONG_CODE,
    "INVALID_OTP": FailureReason.WRONG_CODE,
    "OTP_EXPIRED": FailureReason.CODE_EXPIRED,
}
_DECLINE_ERRORS = {
    "NOT_SUBSCRIBED": FailureReason.NOT_SUBSCRIBED,
    "INVALID_MOBILE_NUMBER": FailureReason.WRONG_PHONE,
    "INVALID_MOBILE_NUMBER_OR_BIRTH_YEAR": FailureReason.WRONG_PHONE_OR_BIRTH_YEAR,
    "OTP_WAIT_BEFORE_RESNED": FailureReason.WAIT_BEFORE_NEXT_CODE,
    "OTP_WAIT_BEFORE_RESEND": FailureReason.WAIT_BEFORE_NEXT_CODE,
    "INSUFFICIENT_BALANCE": FailureReason.INSUFFICIENT_FUNDS,
    "AMOUNT_EXCEEDED_MAXIMUM": FailureReason.AMOUNT_NOT_ALLOWED,
    "NOT_ALLOWED_AMOUNT": FailureReason.AMOUNT_NOT_ALLOWED,
    "CHECK_BANK_ACCOUNT": FailureReason.ACCOUNT_TROUBLE,
}
# Plutu does not process requests with wrong credentials, an invalid body or too high a rate. After any other error
# while charging, including CONFIRMATION_ERROR, the customer may have been charged.
_NOT_PROCESSED_STATUSES = frozenset({401, 403, 422, 429})
# DUPLICATED_INVOICE_NUMBER: an earlier request with this invoice may have charged.
_UNCERTAIN_ERRORS = frozenset({"DUPLICATED_INVOICE_NUMBER", "BACKEND_SERVER_ERROR"})

_UNKNOWN = build_response(ProviderAnswer.UNKNOWN, can_inquire=False)

_ERROR_CODE = re.compile(r"[A-Z_]{1,64}")
_HEADER_VALUE = re.compile(r"[!-~]+")
_MAX_URL_LENGTH = 4096


class UnusableCredentialsError(Exception):
    """The credentials cannot be used and have to be entered again."""


@dataclass(frozen=True, slots=True)
class PlutuCredentials:
    api_key: str = field(repr=False)
    access_token: str = field(repr=False)
    secret_key: str = field(repr=False)
    """The key that Plutu signs notifications with."""

    def __post_init__(self) -> None:
        for name in ("api_key", "access_token"):
            if not _HEADER_VALUE.fullmatch(getattr(self, name)):
                raise UnusableCredentialsError(
                    f"the {name} is empty or has characters that are not allowed in a header"
                )
        if not self.secret_key:
            raise UnusableCredentialsError("the secret_key is empty")


class PlutuProvider:
    name = "plutu"

    def __init__(
        self, url: str, credentials: PlutuCredentials, return_url_base: str, timeout_s: float
    ) -> None:
        headers = {
            "Authorization": f"Bearer {credentials.access_token}",
            "X-API-KEY": credentials.api_key,
        }
        self._client = ProviderClient(url, timeout_s, headers)
        self._return_url_base = return_url_base.rstrip("/")
        # Only a fake Plutu in tests has pages without TLS.
        self._schemes = ("https",) if url.startswith("https:") else ("https", "http")

    def initial_state(self, method: PaymentMethod) -> AttemptState:
        return AttemptState.AWAITING_CODE if method in _GATEWAYS else AttemptState.AWAITING_REDIRECT

    def accepts_amount(self, amount: int) -> bool:
        return amount % 10 == 0

    def start(self, payment: PaymentRequest, details: Card | Wallet | None) -> ProviderResponse:
        """Send a code or open a payment page. Nothing is charged, so after any failure the customer can start again."""
        try:
            if payment.method in _GATEWAYS:
                return self._send_code(payment, details)
            return self._open_page(payment)
        except (NotSentError, NoResponseError) as error:
            _log.warning("plutu did not respond to the start of attempt %s: %s", payment.attempt, error)
            return build_response(ProviderAnswer.DECLINED, FailureReason.PROVIDER_AWAY)

    def can_resend_code(self, method: PaymentMethod) -> bool:
        return method in _GATEWAYS

    def resend_code(
        self,
        payment: PaymentRequest,
        continuation: str | None,  # noqa: ARG002  Plutu starts anew, with another process id
        wallet: Wallet | None,
    ) -> ProviderResponse:
        return self.start(payment, wallet)

    def confirm(self, payment: PaymentRequest, entered: SubmittedCode) -> ProviderResponse:
        """Charge the wallet. If the response is lost, the wallet may have been charged."""
        if entered.continuation is None:
            # The response with the process id was lost. Without it, no code can be confirmed.
            return build_response(ProviderAnswer.DECLINED, FailureReason.CODE_EXPIRED)
        fields = {
            "process_id": entered.continuation,
            "code": entered.code,
            "amount": _dinars(payment.amount),
            "invoice_no": invoice_number(payment.attempt, entered.number),
        }
        try:
            reply = self._call(payment, _GATEWAYS[payment.method], "confirm", fields)
        except NotSentError as error:
            _log.warning(
                "the request to charge attempt %s could not be sent to plutu: %s", payment.attempt, error
            )
            return _needs_code(FailureReason.PROVIDER_AWAY, entered.continuation)
        except NoResponseError as error:
            _log.warning("plutu may have charged attempt %s: %s", payment.attempt, error)
            return _UNKNOWN
        return _confirmed(reply, payment, entered.continuation)

    def status(self, payment: PaymentRequest) -> ProviderResponse:  # noqa: ARG002  Plutu has no status call
        return _UNKNOWN

    def _send_code(self, payment: PaymentRequest, details: Card | Wallet | None) -> ProviderResponse:
        if not isinstance(details, Wallet):
            raise TypeError(f"{payment.method} needs a wallet, not {type(details).__name__}")
        fields = {"mobile_number": details.phone, "amount": _dinars(payment.amount)}
        if payment.method is PaymentMethod.SADAD:
            if details.birth_year is None:
                raise TypeError("sadad needs a birth year")
            fields["birth_year"] = str(details.birth_year)
        reply = self._call(payment, _GATEWAYS[payment.method], "verify", fields)
        process = _result(reply, "process_id")
        return _needs_code(None, process) if is_storable_reference(process) else _not_started(reply, payment)

    def _open_page(self, payment: PaymentRequest) -> ProviderResponse:
        fields = {
            "amount": _dinars(payment.amount),
            "invoice_no": invoice_number(payment.attempt, 0),
            # Without a query string: Plutu appends the signed parameters.
            "return_url": f"{self._return_url_base}/providers/plutu/returns/{payment.lang}/{payment.attempt}",
            "lang": payment.lang,
        }
        reply = self._call(payment, "localbankcards", "confirm", fields)
        url = _result(reply, "redirect_url")
        if _is_valid_redirect(url, self._schemes):
            return ProviderResponse(AttemptOutcome(ProviderAnswer.NEEDS_REDIRECT), redirect_url=url)
        return _not_started(reply, payment)

    def _call(
        self, payment: PaymentRequest, gateway: str, action: str, fields: Mapping[str, str]
    ) -> HttpReply:
        return self._client.post_form(f"/transaction/{gateway}/{action}", fields, payment.is_past_deadline)


def _confirmed(reply: HttpReply, payment: PaymentRequest, continuation: str) -> ProviderResponse:
    reference = _result(reply, "transaction_id")
    if is_storable_reference(reference):
        return build_response(ProviderAnswer.PAID, reference=reference)
    again = _CODE_ERRORS.get(_error_code(reply))
    if again:
        return _needs_code(again, continuation)
    reason = _decline_reason(reply, payment)
    if reason and (_error_code(reply) in _DECLINE_ERRORS or _error_status(reply) in _NOT_PROCESSED_STATUSES):
        return build_response(ProviderAnswer.DECLINED, reason)
    _log.warning("plutu may have charged attempt %s: %s", payment.attempt, _describe(reply))
    return _UNKNOWN


def _not_started(reply: HttpReply, payment: PaymentRequest) -> ProviderResponse:
    reason = _decline_reason(reply, payment)
    if reason is None:
        _log.warning("plutu did not start attempt %s: %s", payment.attempt, _describe(reply))
    return build_response(ProviderAnswer.DECLINED, reason or FailureReason.PROVIDER_AWAY)


def _decline_reason(reply: HttpReply, payment: PaymentRequest) -> FailureReason | None:
    """Return why Plutu declined, or None if the outcome is uncertain."""
    code, status = _error_code(reply), _error_status(reply)
    if code in _UNCERTAIN_ERRORS:
        return None
    if code in _DECLINE_ERRORS:
        return _DECLINE_ERRORS[code]
    if status in (401, 403):
        _log.error("plutu rejects the credentials used for attempt %s (%d)", payment.attempt, status)
        return FailureReason.ACCOUNT_TROUBLE
    return FailureReason.DECLINED if code and 400 <= status < 500 else None


def _needs_code(reason: FailureReason | None, continuation: str) -> ProviderResponse:
    return ProviderResponse(AttemptOutcome(ProviderAnswer.NEEDS_CODE, reason), continuation=continuation)


def _dinars(amount: int) -> str:
    if amount % 10:
        raise ValueError("plutu cannot charge this amount exactly")
    return f"{amount // 1000}.{amount % 1000 // 10:02}"


def _result(reply: HttpReply, name: str) -> str:
    """Return a field of the result, or an empty string if the reply is an error or has no such field."""
    result = reply.body.get("result")
    if not _is_success(reply) or not isinstance(result, dict):
        return ""
    value = result.get(name)
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""


def _is_success(reply: HttpReply) -> bool:
    statuses = (reply.status, reply.body.get("status", reply.status))
    return not reply.body.get("error") and all(re.fullmatch("2[0-9]{2}", str(status)) for status in statuses)


def _error_code(reply: HttpReply) -> str:
    """Return the error code, or an empty string."""
    error = reply.body.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""


def _error_status(reply: HttpReply) -> int:
    """Return the higher of the HTTP status and the status in the error."""
    error = reply.body.get("error")
    own = str(error.get("status")) if isinstance(error, dict) else ""
    return max(reply.status, int(own)) if re.fullmatch("[45][0-9]{2}", own) else reply.status


def _describe(reply: HttpReply) -> str:
    """Describe the reply for the log, without its message, which may quote the request."""
    code = _error_code(reply)
    return f"status {reply.status}, error code {code if _ERROR_CODE.fullmatch(code) else 'unknown'}"


def _is_valid_redirect(url: str, schemes: Collection[str]) -> bool:
    if len(url) > _MAX_URL_LENGTH or not url.isprintable() or re.search(r"[\s\\]", url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.hostname)
