"""One request to a provider: within its time, of bounded size, and clear about whether it can have arrived."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ssl import SSLCertVerificationError
from time import monotonic
from typing import Any
from urllib.parse import quote

import requests
from requests import RequestException, Session
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ConnectTimeout, InvalidURL, SSLError
from urllib3.exceptions import MaxRetryError, NameResolutionError, NewConnectionError

_CONNECT_S = 3.0
_MOST_BYTES = 64 * 1024


class NotSentError(Exception):
    """It surely never left: there was nobody to send it to."""


class NoAnswerError(Exception):
    """It may have arrived, and nobody knows what came of it."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Mapping[str, Any]


class ProviderClient:
    """A new connection for each request: on a kept one nobody could tell whether a request was still read."""

    def __init__(self, base_url: str, timeout_s: float, headers: Mapping[str, str] | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s
        self._headers = {"Accept": "application/json", "Connection": "close", **(headers or {})}

    def get(self, path: str, query: Mapping[str, str]) -> Reply:
        return self._request("GET", path, params=query)

    def post_json(self, path: str, body: Mapping[str, Any]) -> Reply:
        return self._request("POST", path, json=body)

    def post_form(self, path: str, fields: Mapping[str, str]) -> Reply:
        return self._request("POST", path, data=fields)

    def _request(self, method: str, path: str, **content: Any) -> Reply:
        deadline = monotonic() + self._timeout_s
        with Session() as session:
            # Neither a proxy nor credentials out of somebody's home directory.
            session.trust_env = False
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
                    return Reply(answer.status_code, _object_in(answer, deadline))
            except RequestException as error:
                # Never the error's own text: it may quote what was sent.
                if _never_left(error):
                    raise NotSentError(type(error).__name__) from None
                raise NoAnswerError(type(error).__name__) from None


def _never_left(error: RequestException) -> bool:
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


def _object_in(answer: requests.Response, deadline: float) -> Mapping[str, Any]:
    """The JSON object that it says; anything else is no answer."""
    read = bytearray()
    for piece in answer.iter_content(4096):
        read += piece
        if len(read) > _MOST_BYTES or monotonic() > deadline:
            raise NoAnswerError("its answer is too long or too slow")
    try:
        body = json.loads(bytes(read))
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise NoAnswerError(f"it answered {answer.status_code} with something that is no JSON object")
    return body
