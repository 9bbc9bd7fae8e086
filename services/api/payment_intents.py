"""POST /payment-intents and GET /payment-intents/{uuid} (§4.1, §4.2)."""

import re
from uuid import UUID

from flask import Flask, Response, request
from werkzeug.exceptions import Forbidden, NotFound

from services.api.authentication import Authentication
from services.api.rate_limit import RateLimit
from services.api.representation import Representation
from services.api.request_body import BodyNotUsableError, read_object
from services.api.validation import BODY, InvalidRequestError, new_intent
from shared.db.pool import Database
from shared.intents import store
from shared.web.json_answer import JsonAnswer

OUTSIDE_WINDOW = "Must be more than 5 minutes and less than 31 days ahead."
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def add_payment_intents(
    app: Flask,
    base_path: str,
    *,
    database: Database,
    authentication: Authentication,
    rate_limit: RateLimit,
    representation: Representation,
) -> None:
    """Adds the two routes; to the application itself, for a blueprint would cost a tenth of a request."""

    def caller() -> UUID:
        headers = request.headers
        application_id = authentication.application_of(headers.get("X-API-Key"), headers.get("Authorization"))
        rate_limit.take(application_id)
        return application_id

    @app.post(f"{base_path}/payment-intents")
    def create() -> Response:
        application_id = caller()
        body = _read_body()
        try:
            new = new_intent(application_id, body)
        except InvalidRequestError as invalid:
            raise _with_window_judged(database, application_id, invalid) from None
        try:
            with database.cursor() as cursor:
                intent, created = store.create_or_find(cursor, new)
        except store.ExpiryOutsideWindowError:
            raise InvalidRequestError({"expires_at": [OUTSIDE_WINDOW]}) from None
        return JsonAnswer(representation.of(intent), 201 if created else 200)

    @app.get(f"{base_path}/payment-intents/<payment_intent>")
    def retrieve(payment_intent: str) -> Response:
        application_id = caller()
        with database.cursor() as cursor:
            intent = store.find(cursor, UUID(payment_intent)) if _UUID.fullmatch(payment_intent) else None
        if intent is None:
            raise NotFound("There is no payment intent with this uuid.")
        if intent.application_id != application_id:
            raise Forbidden("This payment intent belongs to another application.")
        return JsonAnswer(representation.of(intent), 200)


def _read_body() -> dict[str, object]:
    try:
        return read_object(request.get_data(cache=False))
    except BodyNotUsableError as error:
        raise InvalidRequestError({BODY: [str(error)]}) from None


def _with_window_judged(
    database: Database, application_id: UUID, invalid: InvalidRequestError
) -> InvalidRequestError:
    """All failing fields at once: also a time that only a new intent would be refused for."""
    expires_at = invalid.valid.get("expires_at")
    if expires_at is None:
        return invalid
    with database.cursor() as cursor:
        allowed = store.may_expire_at(
            cursor, application_id, invalid.valid.get("merchant_reference"), expires_at
        )
    return invalid if allowed else InvalidRequestError({**invalid.errors, "expires_at": [OUTSIDE_WINDOW]})
