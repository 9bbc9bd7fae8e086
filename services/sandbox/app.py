"""The Flask application of the sandbox and its routes. They need no credentials: no real money is moved."""

from contextlib import closing
from pathlib import Path
from threading import BoundedSemaphore
from time import sleep

from flask import Blueprint, Flask, request
from flask.typing import ResponseReturnValue

from services.sandbox.bank import Bank, ChargeNotFoundError, ConflictingChargeError
from services.sandbox.charges import Charge
from services.sandbox.checkout_client import (
    WAIT_S,
    CheckoutClient,
    CheckoutUnavailableError,
    IntentNotFoundError,
    NotPaidError,
)
from services.sandbox.ledger import Ledger
from services.sandbox.notifications import NotificationSender
from services.sandbox.request_schemas import (
    InvalidRequestError,
    parse_charge_request,
    parse_code_submission,
    parse_payment_request,
    parse_settlement_outcome,
)
from services.sandbox.scripted_outcomes import SILENT_OUTCOMES
from shared.domain.intents.states import IntentStatus
from shared.platform.settings import SandboxSettings
from shared.platform.uuids import parse_uuid
from shared.platform.web.app import create_app

SERVICE = "sandbox"
_CONCURRENT_PAYMENTS = 32
"""Each holds a thread while the checkout needs another one for its charge."""


def charges_blueprint(bank: Bank, notifier: NotificationSender, silence_s: float) -> Blueprint:
    charges = Blueprint("charges", __name__, url_prefix="/charges")

    @charges.post("")
    def charge() -> ResponseReturnValue:
        new_charge, is_new = bank.charge(parse_charge_request(request.get_data()))
        if is_new and new_charge.script in SILENT_OUTCOMES:
            sleep(silence_s)
        return new_charge.as_json(), 201 if is_new else 200

    @charges.get("")
    def find() -> ResponseReturnValue:
        return {"charges": [found.as_json() for found in _requested_charges(bank)]}

    @charges.get("/<charge_id>")
    def show(charge_id: str) -> ResponseReturnValue:
        return bank.find(charge_id).as_json()

    @charges.post("/<charge_id>/confirm")
    def confirm(charge_id: str) -> ResponseReturnValue:
        return bank.confirm(charge_id, parse_code_submission(request.get_data())).as_json()

    @charges.post("/<charge_id>/resend")
    def resend(charge_id: str) -> ResponseReturnValue:
        """Send the code again: it is always the same one, and nobody receives it."""
        return bank.find(charge_id).as_json()

    @charges.post("/<charge_id>/settle")
    def settle(charge_id: str) -> ResponseReturnValue:
        settled, notification = bank.settle(charge_id, parse_settlement_outcome(request.get_data()))
        return {**settled.as_json(), "notified": notifier.send(notification)}

    return charges


def _requested_charges(bank: Bank) -> list[Charge]:
    intent, attempt = _query_uuid("intent"), _query_uuid("attempt")
    if attempt:
        return [found for found in bank.find_of_attempt(attempt) if intent in (None, found.intent)]
    if intent:
        return bank.find_of_intent(intent)
    after = _query_uuid("after")
    if after:
        return bank.list_after(after)
    raise InvalidRequestError("One of the parameters intent, attempt or after is required.")


def _query_uuid(name: str) -> str | None:
    given = request.args.get(name)
    if given is None:
        return None
    uuid = parse_uuid(given)
    if uuid is None:
        raise InvalidRequestError(f"{name}: Not a valid UUID.")
    return str(uuid)


class TooManyPaymentsError(Exception):
    """All threads that may pay are busy."""


def pay_blueprint(checkout_url: str) -> Blueprint:
    """The route for test suites: pays as a customer does, at the checkout."""
    pay = Blueprint("pay", __name__)
    slots = BoundedSemaphore(_CONCURRENT_PAYMENTS)

    @pay.post("/pay")
    def pay_intent() -> ResponseReturnValue:
        """Respond when the result is known."""
        intent, payment = parse_payment_request(request.get_data())
        if not slots.acquire(blocking=False):
            raise TooManyPaymentsError(f"{_CONCURRENT_PAYMENTS} payments are in progress. Try again later.")
        try:
            with closing(CheckoutClient(checkout_url, intent)) as client:
                client.pay(payment, WAIT_S)
        finally:
            slots.release()
        return {"intent": str(intent), "status": IntentStatus.SUCCEEDED}

    return pay


def make_app(settings: SandboxSettings, checkout_url: str, metrics_dir: Path | None) -> Flask:
    """Create the application. Call it in the worker process: the ledger's connection must not cross a fork.

    `checkout_url` is the address of the checkout for customers. `settings` may name one for the sandbox instead.
    """
    ledger = Ledger(settings.ledger)
    notifier = NotificationSender(ledger, settings.secret)
    app = create_app(SERVICE, {"ledger": ledger.check}, metrics_dir)
    app.register_blueprint(charges_blueprint(Bank(ledger), notifier, settings.silence_s))
    app.register_blueprint(pay_blueprint(settings.notify_url or checkout_url))
    _register_error_responses(app)
    notifier.resume_pending()
    return app


_STATUS_CODES: dict[type[Exception], int] = {
    InvalidRequestError: 422,
    ChargeNotFoundError: 404,
    ConflictingChargeError: 409,
    NotPaidError: 402,
    IntentNotFoundError: 404,
    TooManyPaymentsError: 429,
    CheckoutUnavailableError: 502,
}


def _register_error_responses(app: Flask) -> None:
    def respond(error: Exception) -> ResponseReturnValue:
        return {"message": str(error)}, _STATUS_CODES[type(error)]

    for kind in _STATUS_CODES:
        app.register_error_handler(kind, respond)
