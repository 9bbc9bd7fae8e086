"""Creates and retrieves payment intents (§4.1, §4.2): authenticates, validates, stores, represents."""

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from prometheus_client import Counter
from werkzeug.exceptions import Forbidden, NotFound

from services.api.authentication import ApiKeyRefusedError, Authentication, TokenRefusedError
from services.api.batched_statements import BatchedCreates, BatchedRetrievals
from services.api.rate_limit import RateLimit
from services.api.representation import Representation
from services.api.request_validation import InvalidRequestError, parse_body, parse_new_intent
from shared.domain.intents import store
from shared.platform.client_network import client_network
from shared.platform.database.pool import Database
from shared.platform.tracing.spans import current_trace, is_tracing, set_span_attributes
from shared.platform.uuids import parse_uuid

OUTSIDE_WINDOW = "Must be more than 5 minutes and less than 31 days ahead."
FAST_PATH_ERROR = "mizan.fast_path_error"
"""The key in the WSGI environment where the fast path leaves its exception."""
CREATED_INTENTS = Counter("mizan_intent_creations", "Payment intents created; a repeated create counts once")


if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


class ApiResponse(NamedTuple):
    status: int
    body: bytes


class PaymentIntents:
    def __init__(
        self,
        database: Database,
        authentication: Authentication,
        rate_limit: RateLimit[UUID],
        refusal_limit: RateLimit[str],
        representation: Representation,
    ) -> None:
        self._database = database
        self._creates = BatchedCreates(database)
        self._retrievals = BatchedRetrievals(database)
        self._authentication = authentication
        self._rate_limit = rate_limit
        self._refusal_limit = refusal_limit
        self._representation = representation

    def authenticate(self, environ: "WSGIEnvironment") -> UUID:
        """Return the calling application, and count the call against its rate limit, or its client's if refused.

        Raises ApiKeyRefusedError, TokenRefusedError or TooManyRequestsError, or the error that the fast path met.
        """
        if error := environ.pop(FAST_PATH_ERROR, None):
            raise error
        try:
            application_id = self._authentication.authenticate(
                environ.get("HTTP_X_API_KEY"), environ.get("HTTP_AUTHORIZATION")
            )
        except (ApiKeyRefusedError, TokenRefusedError):
            self._refusal_limit.acquire(client_network(environ.get("REMOTE_ADDR") or ""))
            raise
        self._rate_limit.acquire(application_id)
        return application_id

    def create(self, application_id: UUID, body: bytes) -> ApiResponse:
        """Create the intent, or return the one that has its reference; raises InvalidRequestError."""
        try:
            new = parse_new_intent(application_id, parse_body(body), current_trace())
        except InvalidRequestError as invalid:
            raise self._with_expiry_checked(application_id, invalid) from None
        try:
            intent, created = self._creates.run(new)
        except store.ExpiryOutsideWindowError:
            raise InvalidRequestError({"expires_at": [OUTSIDE_WINDOW]}) from None
        if created:
            CREATED_INTENTS.inc()
        if is_tracing():
            set_span_attributes({"mizan.intent": str(intent.uuid)})
        return ApiResponse(201 if created else 200, self._representation.encode(intent))

    def retrieve(self, application_id: UUID, uuid: str) -> ApiResponse:
        """Return the intent; raises NotFound, or Forbidden if it belongs to another application."""
        parsed = parse_uuid(uuid)
        intent = self._retrievals.run(parsed) if parsed else None
        if intent is None:
            raise NotFound("There is no payment intent with this uuid.")
        if intent.application_id != application_id:
            raise Forbidden("This payment intent belongs to another application.")
        return ApiResponse(200, self._representation.encode(intent))

    def _with_expiry_checked(self, application_id: UUID, invalid: InvalidRequestError) -> InvalidRequestError:
        """Report all failing fields at once: also an expiry that only a new intent is refused for."""
        expires_at = invalid.valid.get("expires_at")
        if expires_at is None:
            return invalid
        merchant_reference = invalid.valid.get("merchant_reference")
        with self._database.cursor() as cursor:
            if store.may_expire_at(cursor, application_id, merchant_reference, expires_at):
                return invalid
        return InvalidRequestError({**invalid.errors, "expires_at": [OUTSIDE_WINDOW]})
