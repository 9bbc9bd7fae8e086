"""One request to a provider: within its time, of bounded size, and clear about whether it can have arrived."""

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ssl import SSLCertVerificationError
from threading import Timer
from typing import Any
from urllib.parse import quote, urlsplit

import requests
from requests import RequestException, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ConnectTimeout, InvalidURL, SSLError
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError, MaxRetryError, NameResolutionError, NewConnectionError

from shared.platform.tracing.spans import Attributes, Kind, start_child_span

_CONNECT_S = 3.0
_MOST_BYTES = 64 * 1024
_WHOLE = 2
"""Of the time that a provider may say nothing: as long may its whole answer take, for a slow yes is a yes."""


class NotSentError(Exception):
    """It surely never left: there was nobody to send it to, or it was too late."""


class NoResponseError(Exception):
    """It may have arrived, and nobody knows what came of it."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    body: Mapping[str, Any]


def _never() -> bool:
    return False


class ProviderClient:
    """A new connection for each request: on a kept one nobody could tell whether a request was still read.

    `is_past_deadline` is asked once the connection stands: looking up a name may have taken long.
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
            return self._ask(method, path, is_past_deadline, **content)
        try:
            reply = self._ask(method, path, is_past_deadline, **content)
        except BaseException as error:
            span.end(type(error).__name__)
            raise
        span.set_attributes({"http.response.status_code": reply.status})
        span.end(str(reply.status) if reply.status >= 400 else None)
        return reply

    def _attributes(self, method: str) -> Attributes:
        """Of the address, only the host: paths and queries may name somebody."""
        return {"http.request.method": method, "server.address": urlsplit(self._base_url).hostname or ""}

    def _ask(self, method: str, path: str, is_past_deadline: Callable[[], bool], **content: Any) -> HttpReply:
        watch = _Watch(_WHOLE * self._timeout_s, is_past_deadline)
        with _Session() as session, watch:
            session.mount("http://", _Adapter(watch))
            session.mount("https://", _Adapter(watch))
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
                    return HttpReply(answer.status_code, _object_in(answer))
            except (RequestException, HTTPError, OSError, ValueError) as error:
                # Never the error's own text: it may quote what was sent.
                if _never_left(error):
                    raise NotSentError(type(error).__name__) from None
                raise NoResponseError(type(error).__name__) from None


class _Session(Session):
    def __init__(self) -> None:
        super().__init__()
        # Neither a proxy nor credentials out of somebody's home directory.
        self.trust_env = False

    def get_redirect_target(self, resp: requests.Response) -> None:
        """A redirect is an answer like any other; requests would read all of it to see where it leads."""


class _Watch:
    """Cuts the connection at its time: timeouts of sockets begin anew with every byte that drips in."""

    def __init__(self, limit_s: float, is_past_deadline: Callable[[], bool]) -> None:
        self._limit_s = limit_s
        self._is_too_late = is_past_deadline
        self._timer: Timer | None = None

    def connected(self, line: socket.socket) -> None:
        if self._is_too_late():
            raise NotSentError("it is too late to send it")
        self._timer = Timer(self._limit_s, _cut, [line])
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> None:
        """Begins with the connection."""

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _cut(line: socket.socket) -> None:
    with suppress(OSError):  # where it has ended by itself
        line.shutdown(socket.SHUT_RDWR)


class _Adapter(HTTPAdapter):
    def __init__(self, watch: _Watch) -> None:
        self._watch = watch
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> HTTPConnectionPool:
        pool: HTTPConnectionPool = super().get_connection_with_tls_context(*args, **kwargs)  # type: ignore[assignment]
        pool.ConnectionCls = _watched(pool.ConnectionCls, self._watch)
        return pool


def _watched(kind: Any, watch: _Watch) -> Any:
    class Watched(kind):  # type: ignore[misc]
        def connect(self) -> None:
            super().connect()
            watch.connected(self.sock)

    return Watched


def _never_left(error: Exception) -> bool:
    if isinstance(error, ConnectTimeout | InvalidURL):
        return True
    if isinstance(error, SSLError):
        # Any other trouble with TLS can come after the request was read.
        return any(isinstance(cause, SSLCertVerificationError) for cause in _causes(error))
    cause = error.args[0] if isinstance(error, RequestsConnectionError) and error.args else None
    return isinstance(cause, MaxRetryError) and isinstance(
        cause.reason, NewConnectionError | NameResolutionError
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Libraries wrap errors as causes, as arguments and as reasons."""
    while error is not None:
        yield error
        inner = getattr(error, "reason", None) or (error.args[0] if error.args else None) or error.__cause__
        error = inner if isinstance(inner, BaseException) else None


def _object_in(answer: requests.Response) -> Mapping[str, Any]:
    """The JSON object that it says; anything else is no answer."""
    read = bytearray()
    for piece in answer.iter_content(4096):
        read += piece
        if len(read) > _MOST_BYTES:
            raise NoResponseError("its answer is too long")
    try:
        body = json.loads(bytes(read))
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise NoResponseError(f"it answered {answer.status_code} with something that is no JSON object")
    return body
