"""The keys that sign requests: webhook secrets, opened once."""

import hmac
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.webhooks.http.client import WebhookRequest
from services.webhooks.pipeline.next_action import NextAction, Send, decide, decide_resend
from services.webhooks.pipeline.queries import (
    DeliveryState,
    DeliveryTarget,
    fetch_deliveries,
    find_recorded_resends,
)
from services.webhooks.pipeline.tries import TryInProgress
from shared.domain.applications.errors import WebhookSecretNotFoundError
from shared.domain.applications.webhook_secrets import open_webhook_secret
from shared.domain.deliveries.signing import build_body, sign_body, signing_key
from shared.domain.messages import DeliveryDue
from shared.platform.database.pool import Database
from shared.platform.encryption import CannotOpenSealError, SealedForAnotherPurposeError, SecretBox

_MOST_KEPT = 10_000


class SigningKeys:
    """Kept in memory: a version of a secret never changes."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box
        self._keys: dict[tuple[str, int], hmac.HMAC] = {}

    def get(self, connection: Connection[Any], application_id: str, version: int) -> hmac.HMAC:
        key = self._keys.get((application_id, version))
        if key is None:
            secret = open_webhook_secret(connection, self._box, UUID(application_id), version)
            if len(self._keys) >= _MOST_KEPT:
                self._keys.clear()
            key = self._keys[application_id, version] = signing_key(secret.text)
        return key


SecretError = WebhookSecretNotFoundError | CannotOpenSealError | SealedForAnotherPurposeError
_SECRET_TROUBLE = (WebhookSecretNotFoundError, CannotOpenSealError, SealedForAnotherPurposeError)


class DeliveryLookup:
    def __init__(self, database: Database, keys: SigningKeys) -> None:
        self._database = database
        self._keys = keys

    def of(
        self, tries: Sequence[TryInProgress]
    ) -> Callable[[], list[tuple[TryInProgress, NextAction | SecretError]]]:
        """The look at one batch, which can be repeated."""
        return partial(self._look, tries)

    def _look(self, tries: Sequence[TryInProgress]) -> list[tuple[TryInProgress, NextAction | SecretError]]:
        """Each try with what is to be done about it; those to send have their request."""
        with self._database.cursor() as cursor:
            deliveries = fetch_deliveries(cursor, {one.delivery_id for one in tries})
            resends = [
                (one.delivery_id, str(one.wanted.id))
                for one in tries
                if not isinstance(one.wanted, DeliveryDue)
            ]
            met = find_recorded_resends(cursor, resends) if resends else set()
            judged: list[tuple[TryInProgress, NextAction | SecretError]] = []
            for one in tries:
                one.delivery = deliveries.get(one.delivery_id)
                verdict: NextAction | SecretError = (
                    decide(one.wanted, one.delivery)
                    if isinstance(one.wanted, DeliveryDue)
                    else decide_resend(one.delivery, is_met=one.key in met)
                )
                if isinstance(verdict, Send) and one.delivery is not None:
                    try:
                        one.post = self._post(cursor.connection, one.delivery, verdict.target)
                    except _SECRET_TROUBLE as trouble:
                        verdict = trouble
                judged.append((one, verdict))
        return judged

    def _post(
        self, connection: Connection[Any], delivery: DeliveryState, target: DeliveryTarget
    ) -> WebhookRequest:
        body = build_body(delivery.id, delivery.event, delivery.intent_uuid)
        key = self._keys.get(connection, delivery.application_id, target.secret_version)
        return WebhookRequest(target.url, body, sign_body(body, key), delivery.application_id)
