"""The routes of the bank and the wallets. There are no credentials: it holds nobody's money."""

from time import sleep

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from services.sandbox.bank import Bank
from services.sandbox.charge import Charge
from services.sandbox.notifying import Notifier
from services.sandbox.scripts import SILENT
from services.sandbox.shapes import WrongShapeError, charge_asked, code_given, outcome_told
from shared.platform.uuids import uuid_in


def charges_blueprint(bank: Bank, notifier: Notifier, silence_s: float) -> Blueprint:
    charges = Blueprint("charges", __name__, url_prefix="/charges")

    @charges.post("")
    def charge() -> ResponseReturnValue:
        made, is_new = bank.charge(charge_asked(request.get_data()))
        if is_new and made.script in SILENT:
            sleep(silence_s)
        return made.as_json(), 201 if is_new else 200

    @charges.get("")
    def find() -> ResponseReturnValue:
        return {"charges": [found.as_json() for found in _found(bank)]}

    @charges.get("/<charge_id>")
    def show(charge_id: str) -> ResponseReturnValue:
        return bank.find(charge_id).as_json()

    @charges.post("/<charge_id>/confirm")
    def confirm(charge_id: str) -> ResponseReturnValue:
        return bank.confirm(charge_id, code_given(request.get_data())).as_json()

    @charges.post("/<charge_id>/settle")
    def settle(charge_id: str) -> ResponseReturnValue:
        settled, notification = bank.settle(charge_id, outcome_told(request.get_data()))
        return {**settled.as_json(), "notified": notifier.send(notification)}

    return charges


def _found(bank: Bank) -> list[Charge]:
    intent, attempt = _asked("intent"), _asked("attempt")
    if attempt:
        return [found for found in bank.find_of_attempt(attempt) if intent in (None, found.intent)]
    if intent:
        return bank.find_of_intent(intent)
    after = _asked("after")
    if after:
        return bank.list_after(after)
    raise WrongShapeError("intent, attempt or after: one of them must say which charges.")


def _asked(name: str) -> str | None:
    given = request.args.get(name)
    if given is None:
        return None
    uuid = uuid_in(given)
    if uuid is None:
        raise WrongShapeError(f"{name}: Not a valid UUID.")
    return str(uuid)
