"""The Flask application of the sandbox and its routes.

Charges are for our own services, with a token derived from SANDBOX_SECRET. `/pay` is for merchants' test suites, with
the credentials of the intent's application.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hmac import compare_digest
from pathlib import Path
from threading import Lock
from time import sleep

from flask import Blueprint, Flask, request
from flask.typing import ResponseReturnValue

from services.sandbox.bank import Bank, ChargeNotFoundError, ConflictingChargeError
from services.sandbox.charges import Charge
from services.sandbox.checkout_client import (
    CheckoutClient,
    CheckoutUnavailableError,
    IntentNotFoundError,
    NotPaidError,
    NotTestModeError,
)
from services.sandbox.ledger import Ledger
from services.sandbox.merchant_access import AccessRefusedError, ApiUnavailableError, check_access
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
from shared.platform.settings import PublicUrls, SandboxSettings
from shared.platform.tokens import sandbox_authorization
from shared.platform.uuids import parse_uuid
from shared.platform.web.app import create_app

SERVICE = "sandbox"
_CONCURRENT_PAYMENTS = 32
"""Each holds a thread while the checkout needs another one for its charge."""
_CONCURRENT_PAYMENTS_PER_KEY = 8
"""So that no merchant takes them all."""
_WAIT_S = 40.0
"""The proxy waits 60 seconds for a response, of which the checkout's provider may take 10."""


class CredentialsRefusedError(Exception):
    """Missing or wrong credentials."""


def charges_blueprint(bank: Bank, notifier: NotificationSender, settings: SandboxSettings) -> Blueprint:
    charges = Blueprint("charges", __name__, url_prefix="/charges")
    authorization = sandbox_authorization(settings.secret).encode()

    @charges.before_request
    def require_token() -> None:
        if not compare_digest(request.headers.get("Authorization", "").encode(), authorization):
            raise CredentialsRefusedError("The token of the sandbox's charges is missing or wrong.")

    @charges.post("")
    def charge() -> ResponseReturnValue:
        new_charge, is_new = bank.charge(parse_charge_request(request.get_data()))
        if is_new and new_charge.script in SILENT_OUTCOMES:
            sleep(settings.silence_s)
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


class PaymentSlots:
    """Limits the payments in progress, of all merchants and of one API key."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._in_progress: Counter[str] = Counter()

    @contextmanager
    def held(self, api_key: str) -> Iterator[None]:
        """Hold a slot within this context. Raises TooManyPaymentsError."""
        with self._lock:
            of_key = self._in_progress[api_key]
            if of_key >= _CONCURRENT_PAYMENTS_PER_KEY or self._in_progress.total() >= _CONCURRENT_PAYMENTS:
                raise TooManyPaymentsError("Too many payments are in progress. Try again later.")
            self._in_progress[api_key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_progress[api_key] -= 1
                self._in_progress += Counter()  # forgets keys without payments


def pay_blueprint(api_url: str, checkout_url: str) -> Blueprint:
    """The route for test suites: pays as a customer does, at the checkout, if the API shows the caller the intent."""
    pay = Blueprint("pay", __name__)
    slots = PaymentSlots()

    @pay.post("/pay")
    def pay_intent() -> ResponseReturnValue:
        """Respond when the result is known."""
        api_key, authorization = _require_merchant_headers()
        intent, payment = parse_payment_request(request.get_data())
        with slots.held(api_key):
            check_access(api_url, intent, api_key, authorization)
            with closing(CheckoutClient(checkout_url, intent)) as client:
                client.pay(payment, _WAIT_S)
        return {"intent": str(intent), "status": IntentStatus.SUCCEEDED}

    return pay


def _require_merchant_headers() -> tuple[str, str]:
    """Return X-API-Key and Authorization as they are: the API checks them."""
    api_key, authorization = request.headers.get("X-API-Key"), request.headers.get("Authorization")
    if not api_key or not authorization:
        raise CredentialsRefusedError(
            "Send the headers X-API-Key and Authorization: Bearer <access token> of the intent's application."
        )
    return api_key, authorization


def make_app(settings: SandboxSettings, public_urls: PublicUrls, metrics_dir: Path | None) -> Flask:
    """Create the application. Call it in the worker process: the ledger's connection must not cross a fork.

    `settings` may name other addresses of the API and of the checkout than the public ones.
    """
    ledger = Ledger(settings.ledger)
    notifier = NotificationSender(ledger, settings.secret)
    app = create_app(SERVICE, {"ledger": ledger.check}, metrics_dir)
    app.register_blueprint(charges_blueprint(Bank(ledger), notifier, settings))
    api_url, checkout_url = settings.api_url or public_urls.api, settings.notify_url or public_urls.checkout
    app.register_blueprint(pay_blueprint(api_url, checkout_url))
    _register_error_responses(app)
    notifier.resume_pending()
    return app


_STATUS_CODES: dict[type[Exception], int] = {
    InvalidRequestError: 422,
    ChargeNotFoundError: 404,
    ConflictingChargeError: 409,
    NotPaidError: 402,
    IntentNotFoundError: 404,
    NotTestModeError: 409,
    TooManyPaymentsError: 429,
    CheckoutUnavailableError: 502,
    ApiUnavailableError: 502,
}


def _register_error_responses(app: Flask) -> None:
    def respond(error: Exception) -> ResponseReturnValue:
        return {"message": str(error)}, _STATUS_CODES[type(error)]

    for kind in _STATUS_CODES:
        app.register_error_handler(kind, respond)

    @app.errorhandler(CredentialsRefusedError)
    def credentials_refused(error: CredentialsRefusedError) -> ResponseReturnValue:
        return {"message": str(error)}, 401, {"WWW-Authenticate": "Bearer"}

    @app.errorhandler(AccessRefusedError)
    def access_refused(error: AccessRefusedError) -> ResponseReturnValue:
        return {"message": str(error)}, error.status
