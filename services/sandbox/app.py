"""The Flask application of the sandbox and its routes. They need no credentials: no real money is moved."""

from pathlib import Path
from time import sleep

from flask import Blueprint, Flask, request
from flask.typing import ResponseReturnValue

from services.sandbox.bank import Bank, ChargeNotFoundError, ConflictingChargeError
from services.sandbox.charges import Charge
from services.sandbox.ledger import Ledger
from services.sandbox.notifications import NotificationSender
from services.sandbox.request_schemas import (
    InvalidRequestError,
    parse_charge_request,
    parse_code_submission,
    parse_settlement_outcome,
)
from services.sandbox.scripted_outcomes import SILENT_OUTCOMES
from shared.platform.settings import SandboxSettings
from shared.platform.uuids import parse_uuid
from shared.platform.web.app import create_app


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


SERVICE = "sandbox"


def make_app(settings: SandboxSettings, metrics_dir: Path | None) -> Flask:
    """Create the application. Call it in the worker process: the ledger's connection must not cross a fork."""
    ledger = Ledger(settings.ledger)
    notifier = NotificationSender(ledger, settings.secret)
    app = create_app(SERVICE, {"ledger": ledger.check}, metrics_dir)
    app.register_blueprint(charges_blueprint(Bank(ledger), notifier, settings.silence_s))
    _register_error_responses(app)
    notifier.resume_pending()
    return app


def _register_error_responses(app: Flask) -> None:
    @app.errorhandler(InvalidRequestError)
    def wrong_shape(error: InvalidRequestError) -> ResponseReturnValue:
        return {"message": str(error)}, 422

    @app.errorhandler(ChargeNotFoundError)
    def unknown(error: ChargeNotFoundError) -> ResponseReturnValue:
        return {"message": str(error)}, 404

    @app.errorhandler(ConflictingChargeError)
    def other(error: ConflictingChargeError) -> ResponseReturnValue:
        return {"message": str(error)}, 409
