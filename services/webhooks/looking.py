"""Before sending: one read for a whole batch says what is to be done about each record, and signs what is sent."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from psycopg import Connection

from services.webhooks.deliveries import Delivery, Target, look, met_resends
from services.webhooks.fence import Send, Verdict, judge, judge_resend
from services.webhooks.sending import Post
from services.webhooks.signing_keys import SigningKeys
from services.webhooks.tries import Try
from shared.domain.applications.errors import WebhookSecretNotFoundError
from shared.domain.deliveries.signing import body_of, signature_of
from shared.domain.messages import DeliveryDue
from shared.platform.database.pool import Database
from shared.platform.encryption import CannotOpenSealError, SealedForAnotherPurposeError

SecretTrouble = WebhookSecretNotFoundError | CannotOpenSealError | SealedForAnotherPurposeError
_SECRET_TROUBLE = (WebhookSecretNotFoundError, CannotOpenSealError, SealedForAnotherPurposeError)


class Looking:
    def __init__(self, database: Database, keys: SigningKeys) -> None:
        self._database = database
        self._keys = keys

    def of(self, tries: Sequence[Try]) -> Callable[[], list[tuple[Try, Verdict | SecretTrouble]]]:
        """The look at one batch, which can be repeated."""
        return partial(self._look, tries)

    def _look(self, tries: Sequence[Try]) -> list[tuple[Try, Verdict | SecretTrouble]]:
        """Each try with what is to be done about it; those to send have their request."""
        with self._database.cursor() as cursor:
            deliveries = look(cursor, {one.delivery_id for one in tries})
            resends = [
                (one.delivery_id, str(one.wanted.id))
                for one in tries
                if not isinstance(one.wanted, DeliveryDue)
            ]
            met = met_resends(cursor, resends) if resends else set()
            judged: list[tuple[Try, Verdict | SecretTrouble]] = []
            for one in tries:
                one.delivery = deliveries.get(one.delivery_id)
                verdict: Verdict | SecretTrouble = (
                    judge(one.wanted, one.delivery)
                    if isinstance(one.wanted, DeliveryDue)
                    else judge_resend(one.delivery, is_met=one.key in met)
                )
                if isinstance(verdict, Send) and one.delivery is not None:
                    try:
                        one.post = self._post(cursor.connection, one.delivery, verdict.target)
                    except _SECRET_TROUBLE as trouble:
                        verdict = trouble
                judged.append((one, verdict))
        return judged

    def _post(self, connection: Connection[Any], delivery: Delivery, target: Target) -> Post:
        body = body_of(delivery.id, delivery.event, delivery.intent_uuid)
        key = self._keys.get(connection, delivery.application_id, target.secret_version)
        return Post(target.url, body, signature_of(body, key), delivery.application_id)
