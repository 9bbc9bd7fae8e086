"""Calls the API."""

import json
import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from http.cookiejar import DefaultCookiePolicy
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import requests
from requests.auth import AuthBase

from .errors import (
    ApiConnectionError,
    ApiError,
    AuthenticationError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    RateLimitedError,
    ServerError,
)
from .payment_intent import PaymentIntent, is_uuid, parse_payment_intent
from .version import VERSION

_MAX_RESPONSE_BYTES = 1_048_576
_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 8.0
_MAX_RETRY_AFTER_S = 10
_ERRORS = {
    401: AuthenticationError,
    403: ForbiddenError,
    404: NotFoundError,
    422: InvalidRequestError,
    429: RateLimitedError,
}


class MizanClient:
    """Creates and retrieves payment intents. Threads may share a client."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        access_token: str,
        *,
        timeout: float = 10.0,
        retries: int = 3,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`base_url` ends in `/api/v1`.

        `timeout` is in seconds: to connect, and then to wait for data. After no response, 408, 429 or 5xx, a request is
        sent again up to `retries` times, with growing pauses. `sleep` makes the pauses; tests replace it.
        Raises ValueError if an argument cannot be used.
        """
        if not base_url.startswith(("https://", "http://")):
            raise ValueError("base_url must begin with https:// or http://")
        if timeout <= 0 or retries < 0:
            raise ValueError("timeout must be positive, and retries must not be negative")
        self._base_url = base_url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self._session = requests.Session()
        self._session.auth = _Credentials(api_key, access_token)
        # The API sets no cookies. Without them, nothing in the session changes, so threads can share it.
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))

    def create_payment_intent(
        self,
        merchant_reference: str,
        amount: int,
        *,
        currency: str = "LYD",
        description: str | None = None,
        return_url: str | None = None,
        customer_external_id: str | None = None,
        metadata: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> PaymentIntent:
        """Create an intent, or return the one that has this merchant_reference.

        `merchant_reference` makes the create idempotent: it can be repeated, and there is one intent. A repeat changes
        nothing, so compare the amount of the result with your order. `amount` is in minor units: 1000 is one dinar.
        `expires_at` needs a time zone. Raises ApiError or ApiConnectionError.
        """
        if expires_at is not None and expires_at.tzinfo is None:
            raise ValueError("expires_at needs a time zone")
        optional = {
            "description": description,
            "return_url": return_url,
            "customer": None if customer_external_id is None else {"external_id": customer_external_id},
            "metadata": None if metadata is None else dict(metadata),
            "expires_at": None if expires_at is None else expires_at.isoformat(),
        }
        body = {"merchant_reference": merchant_reference, "amount": amount, "currency": currency}
        given = {name: value for name, value in optional.items() if value is not None}
        return self._request("POST", "/payment-intents", {**body, **given})

    def retrieve_payment_intent(self, uuid: str) -> PaymentIntent:
        """Return the intent with its current status. Raises ApiError, ApiConnectionError, or ValueError for no uuid."""
        if not is_uuid(uuid):
            raise ValueError("uuid must be the uuid of an intent")
        return self._request("GET", f"/payment-intents/{uuid}")

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> PaymentIntent:
        """Send the request until there is a response that is not worth a retry. All tries have one request id."""
        request_id = uuid4().hex
        content = None if body is None else json.dumps(body).encode()
        for retry in range(self._retries + 1):
            try:
                return self._send(method, path, content, request_id)
            except (ApiError, ApiConnectionError) as error:
                if retry == self._retries or not _is_retried(error):
                    raise
                self._sleep(_pause_before(retry, error))
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, content: bytes | None, request_id: str) -> PaymentIntent:
        headers = {
            "Accept": "application/json",
            "User-Agent": f"mizan-client-python/{VERSION}",
            "X-Request-Id": request_id,
            **({} if content is None else {"Content-Type": "application/json"}),
        }
        try:
            # A redirect is not followed: it would send the credentials elsewhere.
            with self._session.request(
                method,
                self._base_url + path,
                data=content,
                headers=headers,
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
            ) as response:
                return _read_intent(response.status_code, response.headers, _read_body(response), request_id)
        except requests.RequestException as error:
            raise ApiConnectionError(request_id) from error


class _Credentials(AuthBase):
    """Sets both headers. As `auth` of the session they cannot be replaced by a password from ~/.netrc."""

    def __init__(self, api_key: str, access_token: str) -> None:
        for value in (api_key, access_token):
            if not re.fullmatch(r"[!-~]+", value):
                raise ValueError(
                    "api_key and access_token must have only visible ASCII characters, and no line feed"
                )
        self._api_key = api_key
        self._access_token = access_token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["X-API-Key"] = self._api_key
        request.headers["Authorization"] = f"Bearer {self._access_token}"
        return request


def _read_body(response: requests.Response) -> bytes:
    """Return the body, or nothing if it is larger than any response of the API."""
    content = bytearray()
    for chunk in response.iter_content(65_536):
        content += chunk
        if len(content) > _MAX_RESPONSE_BYTES:
            return b""
    return bytes(content)


def _read_intent(status: int, headers: Mapping[str, str], content: bytes, sent_id: str) -> PaymentIntent:
    """Return the intent in a response. Raises the error that the response stands for."""
    request_id = headers.get("X-Request-Id") or sent_id
    try:
        body = json.loads(content.decode())
    except (ValueError, RecursionError):
        body = None
    if status not in (200, 201):
        message, errors = _read_error(status, body)
        retry_after = _read_retry_after(headers.get("Retry-After", ""))
        kind = ServerError if status >= 500 else _ERRORS.get(status, ApiError)
        raise kind(status, message, errors, request_id, retry_after)
    try:
        return parse_payment_intent(body)
    except ValueError as error:
        raise ApiError(status, "The response is not a payment intent.", {}, request_id) from error


def _read_error(status: int, body: Any) -> tuple[str, dict[str, list[str]]]:
    """Return the message and the fields of an error, as far as the body has them."""
    content = body if isinstance(body, dict) else {}
    texts = [
        text for text in (content.get("message"), content.get("error")) if isinstance(text, str) and text
    ]
    message = texts[0] if texts else f"The API responded with status {status}."
    fields = content.get("errors")
    errors = {
        field: [problem for problem in problems if isinstance(problem, str)]
        for field, problems in (fields.items() if isinstance(fields, dict) else ())
        if isinstance(problems, list)
    }
    return message, errors


def _read_retry_after(value: str) -> int | None:
    return int(value) if re.fullmatch(r"[0-9]{1,9}", value) else None


def _is_retried(error: ApiError | ApiConnectionError) -> bool:
    return isinstance(error, ApiConnectionError) or error.status in (408, 429) or error.status >= 500


def _pause_before(retry: int, error: ApiError | ApiConnectionError) -> float:
    """Return the pause before a retry in seconds: it doubles, is random between half and all, and obeys Retry-After."""
    longest = min(_FIRST_PAUSE_S * 2**retry, _MAX_PAUSE_S)
    asked = error.retry_after if isinstance(error, ApiError) else None
    return max(random.uniform(longest / 2, longest), min(asked or 0, _MAX_RETRY_AFTER_S))  # noqa: S311  not a secret
