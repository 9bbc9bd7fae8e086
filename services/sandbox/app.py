"""Puts the sandbox together."""

from pathlib import Path

from flask import Flask
from flask.typing import ResponseReturnValue

from services.sandbox.bank import Bank, OtherChargeError, UnknownChargeError
from services.sandbox.ledger import Ledger
from services.sandbox.notifying import Notifier
from services.sandbox.routes import charges_blueprint
from services.sandbox.shapes import WrongShapeError
from shared.platform.settings import SandboxSettings
from shared.platform.web.app import create_app

SERVICE = "sandbox"


def make_app(settings: SandboxSettings, metrics_dir: Path | None) -> Flask:
    """In the process that answers: the ledger's connection must not cross a fork."""
    ledger = Ledger(settings.ledger)
    notifier = Notifier(ledger, settings.secret)
    app = create_app(SERVICE, {"ledger": ledger.check}, metrics_dir)
    app.register_blueprint(charges_blueprint(Bank(ledger), notifier, settings.silence_s))
    _answer_refusals(app)
    notifier.take_up()
    return app


def _answer_refusals(app: Flask) -> None:
    @app.errorhandler(WrongShapeError)
    def wrong_shape(error: WrongShapeError) -> ResponseReturnValue:
        return {"message": str(error)}, 422

    @app.errorhandler(UnknownChargeError)
    def unknown(error: UnknownChargeError) -> ResponseReturnValue:
        return {"message": str(error)}, 404

    @app.errorhandler(OtherChargeError)
    def other(error: OtherChargeError) -> ResponseReturnValue:
        return {"message": str(error)}, 409
