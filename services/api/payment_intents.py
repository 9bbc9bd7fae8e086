"""Creating and retrieving payment intents (§4.1, §4.2): who calls, what they send, what they get."""

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from werkzeug.exceptions import Forbidden, NotFound

from services.api.authentication import Authentication
from services.api.metrics import CREATED
from services.api.rate_limit import RateLimit
from services.api.representation import Representation
from services.api.request_body import BodyNotUsableError, read_object
from services.api.validation import BODY, InvalidRequestError, new_intent
from shared.domain.intents import store
from shared.platform.database.pool import Database
from shared.platform.tracing.spans import current_trace, is_tracing, set_span_attributes
from shared.platform.uuids import parse_uuid

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

OUTSIDE_WINDOW = "Must be more than 5 minutes and less than 31 days ahead."
TROUBLE = "mizan.trouble"
"""Where the fast lane leaves the exception that it met."""


class Answer(NamedTuple):
    status: int
    body: bytes


class PaymentIntents:
    def __init__(
        self,
        database: Database,
        authentication: Authentication,
        rate_limit: RateLimit,
        representation: Representation,
    ) -> None:
        self._database = database
        self._authentication = authentication
        self._rate_limit = rate_limit
        self._representation = representation

    def caller(self, environ: "WSGIEnvironment") -> UUID:
        """The application that calls, counted against its limit."""
        if trouble := environ.pop(TROUBLE, None):
            raise trouble
        application_id = self._authentication.application_of(
            environ.get("HTTP_X_API_KEY"), environ.get("HTTP_AUTHORIZATION")
        )
        self._rate_limit.take(application_id)
        return application_id

    def create(self, application_id: UUID, body: bytes) -> Answer:
        try:
            new = new_intent(application_id, _read(body), current_trace())
        except InvalidRequestError as invalid:
            raise self._with_window_judged(application_id, invalid) from None
        try:
            with self._database.cursor() as cursor:
                intent, created = store.create_or_find(cursor, new)
        except store.ExpiryOutsideWindowError:
            raise InvalidRequestError({"expires_at": [OUTSIDE_WINDOW]}) from None
        if created:
            CREATED.inc()
        if is_tracing():
            set_span_attributes({"mizan.intent": str(intent.uuid)})
        return Answer(201 if created else 200, self._representation.of(intent))

    def retrieve(self, application_id: UUID, uuid: str) -> Answer:
        intent = None
        if known := parse_uuid(uuid):
            with self._database.cursor() as cursor:
                intent = store.find_intent(cursor, known)
        if intent is None:
            raise NotFound("There is no payment intent with this uuid.")
        if intent.application_id != application_id:
            raise Forbidden("This payment intent belongs to another application.")
        return Answer(200, self._representation.of(intent))

    def _with_window_judged(self, application_id: UUID, invalid: InvalidRequestError) -> InvalidRequestError:
        """All failing fields at once: also a time that only a new intent would be refused for."""
        expires_at = invalid.valid.get("expires_at")
        if expires_at is None:
            return invalid
        merchant_reference = invalid.valid.get("merchant_reference")
        with self._database.cursor() as cursor:
            if store.may_expire_at(cursor, application_id, merchant_reference, expires_at):
                return invalid
        return InvalidRequestError({**invalid.errors, "expires_at": [OUTSIDE_WINDOW]})


def _read(body: bytes) -> dict[str, object]:
    try:
        return read_object(body)
    except BodyNotUsableError as error:
        raise InvalidRequestError({BODY: [str(error)]}) from None
