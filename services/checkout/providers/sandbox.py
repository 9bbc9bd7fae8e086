"""The sandbox as a provider: a simulated bank and two wallets, for test applications."""

import hashlib
import hmac
import logging
from collections.abc import Mapping
from threading import BoundedSemaphore
from typing import Any
from uuid import UUID

import msgspec
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from services.checkout.providers.http_client import HttpReply, NoResponseError, NotSentError, ProviderClient
from services.checkout.providers.interface import (
    Card,
    FailureReason,
    PaymentRequest,
    ProviderResponse,
    SubmittedCode,
    UntrustedNotificationError,
    Wallet,
    build_response,
    is_storable_reference,
)
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.payment_methods import PaymentMethod
from shared.platform.settings import SandboxSettings
from shared.platform.strict_json import InvalidJsonError, parse_json_object
from shared.platform.tokens import sandbox_authorization

NAME = "sandbox"
_UNAUTHORIZED = 401
_log = logging.getLogger(__name__)
_ANSWER_OF_STATUS = {
    "paid": ProviderAnswer.PAID,
    "declined": ProviderAnswer.DECLINED,
    "needs_code": ProviderAnswer.NEEDS_CODE,
}


class SandboxProvider:
    name = NAME

    def __init__(
        self,
        settings: SandboxSettings,
        notify_url: str,
        timeout_s: float,
        slots: BoundedSemaphore | None = None,
    ) -> None:
        """`slots` limits the requests that may charge at the same moment. One too many is not sent."""
        headers = {"Authorization": sandbox_authorization(settings.secret)}
        self._client = ProviderClient(settings.url, timeout_s, headers)
        self._notify_url = notify_url
        self._slots = slots

    def initial_state(self, method: PaymentMethod) -> AttemptState:
        return AttemptState.SENT if method is PaymentMethod.CARD else AttemptState.AWAITING_CODE

    def accepts_amount(self, amount: int) -> bool:
        return amount > 0

    def start(self, payment: PaymentRequest, details: Card | Wallet | None) -> ProviderResponse:
        body = {
            "attempt": str(payment.attempt),
            "intent": str(payment.intent),
            "method": payment.method,
            "amount": payment.amount,
            "currency": payment.currency,
            "notify_url": self._notify_url,
            **_details(details),
        }
        try:
            response = _parse_reply(self._post("/charges", body, payment))
        except NotSentError:
            return build_response(ProviderAnswer.DECLINED, FailureReason.PROVIDER_AWAY)
        except NoResponseError:
            response = build_response(ProviderAnswer.UNKNOWN)
        if response.outcome.answer is ProviderAnswer.UNKNOWN and payment.method is not PaymentMethod.CARD:
            # A wallet is never charged before its code is confirmed.
            return build_response(ProviderAnswer.DECLINED, FailureReason.PROVIDER_AWAY)
        return response

    def can_resend_code(self, method: PaymentMethod) -> bool:  # noqa: ARG002  the sandbox can for each
        return True

    def resend_code(
        self, payment: PaymentRequest, continuation: str | None, wallet: Wallet | None
    ) -> ProviderResponse:
        """Start a wallet's charge again, or have the code of a card's charge sent again."""
        if wallet is not None:
            return self.start(payment, wallet)
        try:
            reply = self._post(f"/charges/{continuation}/resend", {}, payment)
        except (NotSentError, NoResponseError):
            return build_response(ProviderAnswer.DECLINED, FailureReason.PROVIDER_AWAY)
        response = _parse_reply(reply)
        if reply.status == 200 and response.outcome.answer is not ProviderAnswer.UNKNOWN:
            return response
        # Nothing was sent, and nothing was decided about the charge.
        return build_response(ProviderAnswer.DECLINED, FailureReason.PROVIDER_AWAY)

    def confirm(self, payment: PaymentRequest, entered: SubmittedCode) -> ProviderResponse:
        body = {"number": entered.number, "code": entered.code}
        try:
            path = f"/charges/{entered.continuation}/confirm"
            return _parse_reply(self._post(path, body, payment))
        except NotSentError:
            return build_response(ProviderAnswer.NEEDS_CODE, FailureReason.PROVIDER_AWAY)
        except NoResponseError:
            return build_response(ProviderAnswer.UNKNOWN)

    def status(self, payment: PaymentRequest) -> ProviderResponse:
        """Ask for the charge of the attempt. The request is retried because it changes nothing."""
        inquiring = Retrying(
            retry=retry_if_exception_type((NotSentError, NoResponseError)),
            stop=stop_after_attempt(3),
            wait=wait_fixed(0.2),
            reraise=True,
        )
        try:
            reply = inquiring(self._client.get, "/charges", {"attempt": str(payment.attempt)})
        except (NotSentError, NoResponseError):
            return build_response(ProviderAnswer.UNKNOWN)
        charges = reply.body.get("charges")
        if reply.status != 200 or not isinstance(charges, list):
            return build_response(ProviderAnswer.UNKNOWN)
        if not charges:
            return build_response(ProviderAnswer.NOT_FOUND)
        return _parse_charge(charges[0])

    def _post(self, path: str, body: dict[str, Any], payment: PaymentRequest) -> HttpReply:
        """Send a request that may charge. Raises NoResponseError, and NotSentError also if it was refused unread."""
        if self._slots is not None and not self._slots.acquire(blocking=False):
            raise NotSentError("too many requests to the sandbox are in flight")
        try:
            reply = self._client.post_json(path, body, payment.is_past_deadline)
        finally:
            if self._slots is not None:
                self._slots.release()
        if reply.status == _UNAUTHORIZED:
            _log.error("the sandbox refuses our requests, because SANDBOX_SECRET is another one there")
            raise NotSentError("the sandbox refuses our credentials")
        return reply


def _details(details: Card | Wallet | None) -> dict[str, Any]:
    match details:
        case Card():
            return {
                "card": {
                    "number": details.number,
                    "expiry_month": details.expiry_month,
                    "expiry_year": details.expiry_year,
                    "security_code": details.security_code,
                }
            }
        case Wallet():
            return {"wallet": {"phone": details.phone, "birth_year": details.birth_year}}
        case None:
            return {}


def _parse_reply(reply: HttpReply) -> ProviderResponse:
    if reply.status in (200, 201):
        return _parse_charge(reply.body)
    if reply.status >= 500:
        return build_response(ProviderAnswer.UNKNOWN)
    return build_response(ProviderAnswer.DECLINED, FailureReason.DECLINED)


def _parse_charge(charge: object) -> ProviderResponse:
    """Return what the charge says. Anything but a charge is no usable response."""
    if not isinstance(charge, Mapping):
        return build_response(ProviderAnswer.UNKNOWN)
    status, reference = charge.get("status"), charge.get("id")
    answer = _ANSWER_OF_STATUS.get(status) if isinstance(status, str) else None
    if answer is None or not is_storable_reference(reference):
        return build_response(ProviderAnswer.UNKNOWN)
    return ProviderResponse(
        AttemptOutcome(answer, _parse_reason(charge.get("reason")), reference),
        continuation=reference if answer is ProviderAnswer.NEEDS_CODE else None,
    )


def _parse_reason(text: object) -> FailureReason | None:
    if text is None:
        return None
    known = {reason.value: reason for reason in FailureReason}
    return known.get(str(text), FailureReason.DECLINED)


class SandboxNotification(msgspec.Struct, frozen=True):
    """A notification that the sandbox sends when a charge is settled."""

    charge: str
    attempt: UUID
    intent: UUID
    amount: int
    currency: str
    status: str

    def outcome(self) -> AttemptOutcome | None:
        """Return the outcome, or None if the status settles nothing."""
        if self.status == "paid":
            return AttemptOutcome(ProviderAnswer.PAID, provider_reference=self.charge)
        if self.status == "declined":
            return AttemptOutcome(ProviderAnswer.DECLINED, FailureReason.DECLINED, self.charge)
        return None


def read_notification(body: bytes, signature: str, secret: str) -> SandboxNotification:
    """Verify the signature and parse the body. Raises UntrustedNotificationError."""
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise UntrustedNotificationError("the signature does not match")
    try:
        notification = msgspec.convert(parse_json_object(body), SandboxNotification)
    except (InvalidJsonError, msgspec.MsgspecError) as error:
        raise UntrustedNotificationError("the body is not a notification") from error
    if not is_storable_reference(notification.charge):
        raise UntrustedNotificationError("the charge is not valid")
    return notification
