"""The API's two routes in Flask."""

from flask import Flask, Response, request

from services.api.payment_intents import Answer, PaymentIntents


def add_routes(app: Flask, base_path: str, intents: PaymentIntents) -> None:
    @app.post(f"{base_path}/payment-intents")
    def create() -> Response:
        application_id = intents.caller(request.environ)
        return _json(intents.create(application_id, request.get_data(cache=False)))

    @app.get(f"{base_path}/payment-intents/<payment_intent>")
    def retrieve(payment_intent: str) -> Response:
        return _json(intents.retrieve(intents.caller(request.environ), payment_intent))


def _json(answer: Answer) -> Response:
    return Response(answer.body, answer.status, content_type="application/json")
