"""HTTP requests to providers: bounded in time and size, with errors that tell whether the request may have arrived."""

import codecs
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ssl import SSLCertVerificationError
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from requests import RequestException
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ConnectTimeout, InvalidURL, SSLError
from urllib3.exceptions import HTTPError, MaxRetryError, NameResolutionError, NewConnectionError

from shared.platform.http_session import BoundedSession, read_body
from shared.platform.strict_json import InvalidJsonError, parse_json_object
from shared.platform.tracing.spans import Attributes, Kind, start_child_span

_CONNECT_S = 3.0
_MAX_BODY_BYTES = 64 * 1024
_TOTAL_TIMEOUT_FACTOR = 2
"""The whole response may take this many times the read timeout, because a slow confirmation still counts."""


class NotSentError(Exception):
    """The request was certainly not sent: the provider could not be reached, or the deadline had passed."""


class NoResponseError(Exception):
    """The request may have arrived, but there is no usable response."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: Mapping[str, Any]


def _never() -> bool:
    return False


class ProviderClient:
    """Opens a new connection for each request. On a reused one, a failure would not tell whether a request was read.

    `is_past_deadline` is called after connecting, because the name lookup may take long. Each method raises
    NotSentError or NoResponseError.
    """

    def __init__(self, base_url: str, timeout_s: float, headers: Mapping[str, str] | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {"Accept": "application/json", "Connection": "close", **(headers or {})}

    def get(self, path: str, query: Mapping[str, str]) -> HttpReply:
        return self._request("GET", path, _never, params=query)

    def post_json(
        self, path: str, body: Mapping[str, Any], is_past_deadline: Callable[[], bool] = _never
    ) -> HttpReply:
        return self._request("POST", path, is_past_deadline, json=body)

    def post_form(
        self, path: str, fields: Mapping[str, str], is_past_deadline: Callable[[], bool] = _never
    ) -> HttpReply:
        return self._request("POST", path, is_past_deadline, data=fields)

    def _request(
        self, method: str, path: str, is_past_deadline: Callable[[], bool], **content: Any
    ) -> HttpReply:
        span = start_child_span(f"{method} provider", Kind.CLIENT, self._attributes(method))
        if span is None:
            return self._send(method, path, is_past_deadline, **content)
        try:
            reply = self._send(method, path, is_past_deadline, **content)
        except BaseException as error:
            span.end(type(error).__name__)
            raise
        span.set_attributes({"http.response.status_code": reply.status})
        span.end(str(reply.status) if reply.status >= 400 else None)
        return reply

    def _attributes(self, method: str) -> Attributes:
        """Return only the host of the URL: paths and queries may contain personal data."""
        return {"http.request.method": method, "server.address": urlsplit(self._base_url).hostname or ""}

    def _send(
        self, method: str, path: str, is_past_deadline: Callable[[], bool], **content: Any
    ) -> HttpReply:
        def check_deadline() -> None:
            if is_past_deadline():
                raise NotSentError("the deadline for sending has passed")

        with BoundedSession(_TOTAL_TIMEOUT_FACTOR * self._timeout_s, check_deadline) as session:
            try:
                with session.request(
                    method,
                    self._base_url + quote(path),
                    headers=self._headers,
                    timeout=(min(_CONNECT_S, self._timeout_s), self._timeout_s),
                    allow_redirects=False,
                    stream=True,
                    **content,
                ) as answer:
                    return HttpReply(answer.status_code, _read_json_object(answer))
            except (RequestException, HTTPError, OSError, ValueError) as error:
                # Without the text of the error, which may quote the request.
                if _was_not_sent(error):
                    raise NotSentError(type(error).__name__) from None
                raise NoResponseError(type(error).__name__) from None


def _was_not_sent(error: Exception) -> bool:
    if isinstance(error, ConnectTimeout | InvalidURL):
        return True
    if isinstance(error, SSLError):
        # Other TLS errors can occur after the request was read.
        return any(isinstance(cause, SSLCertVerificationError) for cause in _causes(error))
    cause = error.args[0] if isinstance(error, RequestsConnectionError) and error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(
        cause.reason, NewConnectionError | NameResolutionError
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what it wraps: libraries use causes, arguments and reasons."""
    while error is not None:
        yield error
        inner = getattr(error, "reason", None) or (error.args[0] if error.args else None) or error.__cause__
        error = inner if isinstance(inner, BaseException) else None


def _read_json_object(answer: requests.Response) -> Mapping[str, Any]:
    """Return the JSON object of the body. Raises NoResponseError for anything else, also for repeated keys."""
    body = read_body(answer, _MAX_BODY_BYTES)
    if body is None:
        raise NoResponseError("the response is too long")
    try:
        # Some servers send a byte order mark. It changes nothing, and the response may say that somebody was charged.
        return parse_json_object(body.removeprefix(codecs.BOM_UTF8))
    except InvalidJsonError:
        # Without the text of the error, which may quote the response.
        raise NoResponseError(f"the response {answer.status_code} is not a usable JSON object") from None
