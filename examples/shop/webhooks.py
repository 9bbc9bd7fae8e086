"""The webhook endpoint: checks the signature of the raw bytes, stores the webhook, and responds."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import RequestEntityTooLarge

from mizan_client import InvalidWebhookError, SignatureError, verify_webhook

from .database import Database
from .endpoint_debug import Behaviour, EndpointRequest, EndpointSwitch, Verdict, record_request
from .payments import find_payment_of_intent
from .progress import Step, add_entry
from .settings import CredentialsError, read_credentials
from .settlement import record_webhook
from .webhook_inbox import Webhook, accepted_secrets, add_secret, store_webhook

_MAX_BYTES = 16_384
"""Mizan's webhooks are far smaller. The limit protects our memory."""
_MAX_FIELD_LENGTH = 100


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    database: Database
    credentials_file: Path
    endpoint_switch: EndpointSwitch
    wake_worker: Callable[[], None]

    def receive(self) -> ResponseReturnValue:
        """Check the signature, then the switch, then store the webhook, and respond last."""
        now = time.time()
        try:
            body = self._body()
        except RequestEntityTooLarge:
            return self._respond(now, b"", Verdict.TOO_LARGE, 413, "too large")
        # 1. Reject what Mizan did not sign, before anything parses it.
        try:
            webhook = self._verify(body, now)
        except SignatureError:
            return self._respond(now, body, Verdict.BAD_SIGNATURE, 401, "the signature does not match")
        except InvalidWebhookError:
            return self._respond(now, body, Verdict.UNREADABLE, 400, "this is not a valid webhook")
        if (behaviour := self.endpoint_switch.behaviour) is not Behaviour.GOOD:
            return self._misbehave(now, body, behaviour)
        # 2. and 3. Store it, unless it is known; then respond, within 10 seconds.
        is_new = self._store(webhook)
        self.wake_worker()
        verdict = Verdict.ACCEPTED if is_new else Verdict.AGAIN
        return self._respond(now, body, verdict, 200, "received" if is_new else "received before")

    def _body(self) -> bytes:
        request.max_content_length = _MAX_BYTES
        return request.get_data(cache=False)

    def _verify(self, body: bytes, now: float) -> Webhook:
        event = verify_webhook(body, request.headers.get("Service-Signature"), self._secrets(now))
        if not all(text.isascii() and len(text) <= _MAX_FIELD_LENGTH for text in (event.id, event.event)):
            raise InvalidWebhookError
        return Webhook(event.id, event.event, event.intent_uuid, now)

    def _secrets(self, now: float) -> list[str]:
        with self.database.transaction() as connection:
            # Without the file, the secrets known before remain accepted.
            with suppress(CredentialsError):
                add_secret(connection, read_credentials(self.credentials_file).webhook_secret, now)
            return accepted_secrets(connection, now)

    def _store(self, webhook: Webhook) -> bool:
        with self.database.transaction() as connection:
            is_new = store_webhook(connection, webhook)
            payment = find_payment_of_intent(connection, webhook.uuid)
            if payment is not None and is_new:
                record_webhook(connection, payment, webhook)
            elif payment is not None:
                at = webhook.received_at
                add_entry(
                    connection, payment.order_id, payment.reference, Step.WEBHOOK_AGAIN, at, id=webhook.id
                )
        return is_new

    def _misbehave(self, now: float, body: bytes, behaviour: Behaviour) -> ResponseReturnValue:
        status, text = {
            Behaviour.FAIL: (500, "the switch says: fail"),
            Behaviour.HANG: (503, "the switch says: hang"),
            Behaviour.REDIRECT: (302, "the switch says: redirect"),
        }.get(behaviour, (401, "the switch says: refuse"))
        response = self._respond(now, body, Verdict.SWITCHED, status, text)
        if behaviour is Behaviour.HANG:
            self.endpoint_switch.hang()
        if behaviour is Behaviour.REDIRECT:
            return *response, {"Location": "/webhooks/elsewhere"}
        return response

    def _respond(
        self, at: float, body: bytes, verdict: Verdict, status: int, text: str
    ) -> tuple[dict[str, str], int]:
        headers = tuple((name, value) for name, value in request.headers.items() if name != "Cookie")
        with self.database.transaction() as connection:
            record_request(
                connection, EndpointRequest(at, headers, body.decode(errors="replace"), verdict, status)
            )
        return {"message": text}, status


def webhooks_blueprint(endpoint: WebhookEndpoint) -> Blueprint:
    blueprint = Blueprint("webhooks", __name__)
    blueprint.post("/webhooks/mizan")(endpoint.receive)
    return blueprint
