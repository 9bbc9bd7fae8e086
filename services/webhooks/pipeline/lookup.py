"""Looks up the deliveries of a batch with one query, decides what to do with each record, and signs the requests.

A batch of events is taken in first: their deliveries are created.
"""

import hmac
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from psycopg import Connection

from services.webhooks.http.client import WebhookRequest
from services.webhooks.pipeline.intake import take_in
from services.webhooks.pipeline.next_action import NextAction, Reject, Send, decide, decide_resend
from services.webhooks.pipeline.queries import (
    DeliveryState,
    DeliveryTarget,
    fetch_deliveries,
    find_recorded_resends,
    find_unless_succeeded,
)
from services.webhooks.pipeline.tries import TryInProgress
from services.webhooks.retry_schedule import DeliveryStatus
from shared.domain.applications.errors import WebhookSecretNotFoundError
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.domain.deliveries.signing import build_body, sign_body, signing_key
from shared.domain.messages import DeliveryDue
from shared.platform.database.pool import Database
from shared.platform.encryption import DecryptionError, KeysUnavailableError, SecretBox, WrongPurposeError

SecretError = WebhookSecretNotFoundError | DecryptionError | WrongPurposeError | KeysUnavailableError
_SECRET_ERRORS = (WebhookSecretNotFoundError, DecryptionError, WrongPurposeError, KeysUnavailableError)

_MAX_KEYS = 10_000


class SigningKeys:
    """Decrypts each version of a webhook secret once and keeps its key in memory: a version never changes."""

    def __init__(self, box: SecretBox) -> None:
        self._box = box
        self._keys: dict[tuple[str, int], hmac.HMAC] = {}

    def get(self, connection: Connection[Any], application_id: str, version: int) -> hmac.HMAC:
        """Raises one of `SecretError` if the secret is missing or cannot be decrypted, or not now."""
        key = self._keys.get((application_id, version))
        if key is None:
            secret = decrypt_webhook_secret(connection, self._box, UUID(application_id), version)
            if len(self._keys) >= _MAX_KEYS:
                self._keys.clear()
            key = self._keys[application_id, version] = signing_key(secret.text)
        return key


class DeliveryLookup:
    """The first stage of the pipeline."""

    def __init__(self, database: Database, keys: SigningKeys) -> None:
        self._database = database
        self._keys = keys

    def prepare(
        self, tries: Sequence[TryInProgress]
    ) -> Callable[[], list[tuple[TryInProgress, NextAction | SecretError]]]:
        """Return the look-up of one batch, which may be repeated."""
        return partial(self._look_up, tries)

    def _look_up(
        self, tries: Sequence[TryInProgress]
    ) -> list[tuple[TryInProgress, NextAction | SecretError]]:
        """Return each try with its next action. Tries to be sent get their request."""
        with self._database.cursor() as cursor:
            events = [one for one in tries if one.event is not None and one.delivery is None]
            deliveries, rejected = take_in(cursor, events) if events else ({}, {})
            known = {one.delivery_id for one in tries if one.key not in rejected} - deliveries.keys()
            if known:
                deliveries |= fetch_deliveries(cursor, known)
            resends = [
                (one.delivery_id, str(one.message.id))
                for one in tries
                if not isinstance(one.message, DeliveryDue)
            ]
            recorded = find_recorded_resends(cursor, resends) if resends else set()
            late = [
                resend
                for delivery, resend in resends
                if delivery in deliveries and deliveries[delivery].status is DeliveryStatus.SUCCEEDED
            ]
            unless_succeeded = find_unless_succeeded(cursor, late) if late else set()
            decided: list[tuple[TryInProgress, NextAction | SecretError]] = []
            for one in tries:
                one.delivery = deliveries.get(one.delivery_id)
                action: NextAction | SecretError
                if one.key in rejected:
                    action = rejected[one.key]
                elif one.delivery is not None and one.delivery.application_id != one.application_id:
                    action = Reject(f"delivery {one.delivery_id} belongs to another application")
                elif isinstance(one.message, DeliveryDue):
                    action = decide(one.message, one.delivery)
                else:
                    action = decide_resend(
                        one.delivery,
                        is_recorded=one.key[:2] in recorded,
                        is_unless_succeeded=str(one.message.id) in unless_succeeded,
                    )
                if isinstance(action, Send) and one.delivery is not None:
                    try:
                        one.request = self._request(cursor.connection, one.delivery, action.target)
                    except _SECRET_ERRORS as error:
                        action = error
                decided.append((one, action))
        return decided

    def _request(
        self, connection: Connection[Any], delivery: DeliveryState, target: DeliveryTarget
    ) -> WebhookRequest:
        body = build_body(delivery.id, delivery.event, delivery.intent_uuid)
        key = self._keys.get(connection, delivery.application_id, target.secret_version)
        return WebhookRequest(target.url, body, sign_body(body, key), delivery.application_id)
