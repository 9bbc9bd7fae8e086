"""The errors of this package. All are subclasses of MizanError."""

from collections.abc import Mapping, Sequence


class MizanError(Exception):
    """Base class of all errors of this package."""


class ApiConnectionError(MizanError):
    """There was no complete response, also after the retries.

    The request may or may not have been executed. Send it again later: a create with the same merchant_reference
    returns the same intent.
    """

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.message = "The API did not respond."
        self.request_id = request_id
        """The id that was sent with the request."""

    def __str__(self) -> str:
        return f"{self.message} (request {self.request_id})"


class ApiError(MizanError):
    """The API responded with an error, or with something that is not a payment intent."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: Mapping[str, Sequence[str]],
        request_id: str,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(status, message, errors, request_id, retry_after)
        self.status = status
        self.message = message
        """For a developer to read. The text may change."""
        self.errors = errors
        """What is wrong, by field, for example `amount` or `metadata.color`. Empty unless the status is 422."""
        self.request_id = request_id
        """Quote it when you ask for help."""
        self.retry_after = retry_after
        """Seconds to wait before the next request, if the API said so."""

    def __str__(self) -> str:
        fields = "".join(f" {field}: {' '.join(texts)}" for field, texts in self.errors.items())
        return f"{self.message}{fields} (status {self.status}, request {self.request_id})"


class AuthenticationError(ApiError):
    """401: the API key or the access token is missing, unknown or revoked."""


class ForbiddenError(ApiError):
    """403: the intent belongs to another application."""


class NotFoundError(ApiError):
    """404: there is no intent with this uuid."""


class InvalidRequestError(ApiError):
    """422: the request is invalid. `errors` says why, by field. Do not send it again unchanged."""


class RateLimitedError(ApiError):
    """429: too many requests, also after the retries."""


class ServerError(ApiError):
    """5xx: a problem of the API, also after the retries. Send the request again later."""


class SignatureError(MizanError):
    """The webhook is not signed with one of the secrets. Respond with 401."""


class InvalidWebhookError(MizanError):
    """The webhook is signed, but does not have the documented format. Respond with 400."""
