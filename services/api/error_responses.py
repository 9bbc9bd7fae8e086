"""The error responses of §7: 401 for credentials, 422 for an invalid request, 429 for too many requests.

403 and 404 are raised by `payment_intents`, 408 by `slow_clients`, 413 by Werkzeug. `shared.platform.web.errors`
answers those, 500 and 503.
"""

from flask import Flask
from flask.typing import ResponseReturnValue

from services.api.authentication import ApiKeyRefusedError, TokenRefusedError
from services.api.rate_limit import TooManyRequestsError
from services.api.request_validation import InvalidRequestError


def register_error_responses(app: Flask) -> None:
    @app.errorhandler(ApiKeyRefusedError)
    def api_key_refused(error: ApiKeyRefusedError) -> ResponseReturnValue:
        return {"error": str(error)}, 401

    @app.errorhandler(TokenRefusedError)
    def token_refused(error: TokenRefusedError) -> ResponseReturnValue:
        return {"message": str(error)}, 401, {"WWW-Authenticate": "Bearer"}

    @app.errorhandler(InvalidRequestError)
    def invalid_request(error: InvalidRequestError) -> ResponseReturnValue:
        return {"message": "The request is not valid.", "errors": error.errors}, 422

    @app.errorhandler(TooManyRequestsError)
    def too_many_requests(error: TooManyRequestsError) -> ResponseReturnValue:
        return {"message": str(error)}, 429, {"Retry-After": str(error.retry_after)}
