"""Asks the API whether a merchant's credentials may see an intent. The sandbox has no database of its own."""

from typing import Any
from uuid import UUID

import requests
from urllib3.exceptions import HTTPError

from shared.platform.http_session import BoundedSession, read_body
from shared.platform.strict_json import InvalidJsonError, parse_json_object

_SOCKET_TIMEOUT_S = 5.0
_TOTAL_TIMEOUT_S = 8.0
_MAX_BODY_BYTES = 64 * 1024
_MAX_MESSAGE_LENGTH = 300
_OK = 200
_REFUSALS = (401, 403, 404, 429)
"""Statuses that the merchant gets as they are. Any other one is a fault of ours."""


class AccessRefusedError(Exception):
    """The API refuses the credentials, the intent or the rate. Has its status, and its message as text."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class ApiUnavailableError(Exception):
    """The API does not respond, or not as expected."""


def check_access(api_url: str, intent: UUID, api_key: str, authorization: str) -> None:
    """Return if these credentials may see the intent. Raises AccessRefusedError or ApiUnavailableError."""
    status, body = _retrieve(f"{api_url}/api/v1/payment-intents/{intent}", api_key, authorization)
    if status in _REFUSALS:
        raise AccessRefusedError(status, _message(body))
    if status != _OK:
        raise ApiUnavailableError(f"the API responded with {status}")
    data = body.get("data")
    if not isinstance(data, dict) or data.get("uuid") != str(intent):
        raise ApiUnavailableError("the API responded with something that is not this intent")


def _retrieve(url: str, api_key: str, authorization: str) -> tuple[int, dict[str, Any]]:
    credentials = {"X-API-Key": api_key, "Authorization": authorization}
    try:
        with (
            BoundedSession(_TOTAL_TIMEOUT_S) as session,
            session.get(
                url, headers=credentials, timeout=_SOCKET_TIMEOUT_S, allow_redirects=False, stream=True
            ) as response,
        ):
            return response.status_code, parse_json_object(read_body(response, _MAX_BODY_BYTES) or b"")
    except InvalidJsonError:
        raise ApiUnavailableError("the API responded with something that is not a JSON object") from None
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        # Without the text of the error, which may quote the request.
        raise ApiUnavailableError(f"the API cannot be reached ({type(error).__name__})") from None


def _message(body: dict[str, Any]) -> str:
    message = body.get("message") or body.get("error")
    return message[:_MAX_MESSAGE_LENGTH] if isinstance(message, str) else "The API refused the request."
