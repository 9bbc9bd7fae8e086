"""The webhook endpoint (§6): check the signature over the raw bytes, write it down, answer; the work comes after."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import RequestEntityTooLarge

from examples.shop.credentials import NoCredentialsError, read_credentials
from examples.shop.database import Database
from examples.shop.endpoint import Behaviour, Endpoint
from examples.shop.inbox import Webhook, receive
from examples.shop.journal import Step, enter
from examples.shop.payments import payment_of_intent
from examples.shop.requests_seen import Seen, Verdict, note_request
from examples.shop.settling import note_webhook
from examples.shop.signatures import accepted_secrets, add_secret, is_signed

_MOST_BYTES = 16_384
"""Mizan's are far smaller; nobody gets to fill our memory."""
_LONGEST_TEXT = 100


class UnreadableError(Exception):
    """Signed, but not as §2.2 says."""


@dataclass(frozen=True, slots=True)
class Receiver:
    database: Database
    credentials_file: Path
    endpoint: Endpoint
    wake_worker: Callable[[], None]

    def answer(self) -> ResponseReturnValue:
        """The signature first, then the switch, then the inbox; what is told to Mizan comes last."""
        now = time.time()
        try:
            body = self._body()
        except RequestEntityTooLarge:
            return self._say(now, b"", Verdict.TOO_LARGE, 413, "too large")
        # 1. Reject what Mizan did not sign, before anything reads it.
        if not is_signed(body, request.headers.get("Service-Signature", ""), self._secrets(now)):
            return self._say(now, body, Verdict.BAD_SIGNATURE, 401, "the signature does not fit")
        try:
            webhook = webhook_in(body, now)
        except UnreadableError:
            return self._say(now, body, Verdict.UNREADABLE, 400, "this is no webhook")
        if (behaviour := self.endpoint.behaviour) is not Behaviour.GOOD:
            return self._misbehave(now, body, behaviour)
        # 2. and 3. Write it down, unless it is known already; then answer, within 10 seconds.
        is_new = self._write_down(webhook)
        self.wake_worker()
        verdict = Verdict.ACCEPTED if is_new else Verdict.AGAIN
        return self._say(now, body, verdict, 200, "received" if is_new else "received before")

    def _body(self) -> bytes:
        request.max_content_length = _MOST_BYTES
        return request.get_data(cache=False)

    def _secrets(self, now: float) -> list[str]:
        with self.database.transaction() as connection:
            # Without the file, those that are known still count.
            with suppress(NoCredentialsError):
                add_secret(connection, read_credentials(self.credentials_file).webhook_secret, now)
            return accepted_secrets(connection, now)

    def _write_down(self, webhook: Webhook) -> bool:
        with self.database.transaction() as connection:
            is_new = receive(connection, webhook)
            payment = payment_of_intent(connection, webhook.uuid)
            if payment is not None and is_new:
                note_webhook(connection, payment, webhook)
            elif payment is not None:
                at = webhook.received_at
                enter(connection, payment.order_id, payment.reference, Step.WEBHOOK_AGAIN, at, id=webhook.id)
        return is_new

    def _misbehave(self, now: float, body: bytes, behaviour: Behaviour) -> ResponseReturnValue:
        status, text = {
            Behaviour.FAIL: (500, "the switch says: fail"),
            Behaviour.HANG: (503, "the switch says: hang"),
            Behaviour.REDIRECT: (302, "the switch says: redirect"),
        }.get(behaviour, (401, "the switch says: refuse"))
        answer = self._say(now, body, Verdict.SWITCHED, status, text)
        if behaviour is Behaviour.HANG:
            self.endpoint.hang()
        if behaviour is Behaviour.REDIRECT:
            return *answer, {"Location": "/webhooks/elsewhere"}
        return answer

    def _say(
        self, at: float, body: bytes, verdict: Verdict, status: int, text: str
    ) -> tuple[dict[str, str], int]:
        headers = tuple((name, value) for name, value in request.headers.items() if name != "Cookie")
        with self.database.transaction() as connection:
            note_request(connection, Seen(at, headers, body.decode(errors="replace"), verdict, status))
        return {"message": text}, status


def webhook_in(body: bytes, received_at: float) -> Webhook:
    try:
        content = json.loads(body)
        texts = (content["id"], content["event"], content["data"]["uuid"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableError from None
    if not all(isinstance(text, str) and text.isascii() and 0 < len(text) <= _LONGEST_TEXT for text in texts):
        raise UnreadableError
    return Webhook(*texts, received_at)


def webhooks_blueprint(receiver: Receiver) -> Blueprint:
    blueprint = Blueprint("webhooks", __name__)
    blueprint.post("/webhooks/mizan")(receiver.answer)
    return blueprint
