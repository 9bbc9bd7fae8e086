"""A client of the Transit API of HashiCorp Vault (and of OpenBao): data keys, decrypt, rewrap, HMAC.

Every answer is checked: it is bounded in time and in size, and what it contains must have the expected form.
"""

import base64
import binascii
import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, TypeVar

import requests
from prometheus_client import Counter, Gauge

from shared.platform.encryption import DecryptionError, KeysUnavailableError
from shared.platform.settings import TransitSettings
from shared.platform.strict_json import InvalidJsonError, parse_json_object

_MAX_RESPONSE_BYTES: Final = 64 * 1024
_MAX_TOKEN_BYTES: Final = 8 * 1024
_KEY_BYTES: Final = 32
_WRAPPED: Final = re.compile(r"vault:v([1-9][0-9]{0,9}):[A-Za-z0-9+/]{16,1000}={0,2}")
_TOKEN: Final = re.compile(r"[!-~]+")
# After an outage was seen, calls fail at once for this long: a batch of many texts must not wait for each.
_AWAY_S: Final = 1.0

_LOOKUP_PATH: Final = "auth/token/lookup-self"
_OUTCOMES: Final = ("ok", "unavailable", "refused")
"""`refused`: the KMS answers, and cannot decrypt this data key."""

REQUESTS = Counter("mizan_kms_requests", "Requests to the KMS, by outcome", ["operation", "key", "outcome"])
FAILING = Gauge(
    "mizan_kms_failing",
    "1 if the last request of this kind got no usable answer from the KMS",
    ["operation", "key"],
    multiprocess_mode="livemostrecent",
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class DataKey:
    """A key that encrypts texts, and the same key as the KMS has encrypted it, which is stored beside the texts."""

    plain: bytes = field(repr=False)
    wrapped: str


def wrapped_version(wrapped: str) -> int:
    """Return which version of the KMS's key has wrapped a data key. Raises DecryptionError if it is none."""
    found = _WRAPPED.fullmatch(wrapped)
    if found is None:
        raise DecryptionError("the wrapped data key does not have the form of Vault Transit")
    return int(found[1])


class TransitClient:
    """Calls raise KeysUnavailableError while the KMS does not answer, refuses the token, or answers nonsense."""

    def __init__(self, settings: TransitSettings) -> None:
        self._settings = settings
        self._away_until = 0.0
        self._away_because = ""

    def check(self) -> None:
        """Check that the KMS answers and accepts the token."""
        self._call("check", "", _LOOKUP_PATH, dict)

    def create_data_key(self, name: str) -> DataKey:
        path = self._path("datakey/plaintext", name)
        return self._call("datakey", name, path, _read_data_key, {"bits": _KEY_BYTES * 8})

    def decrypt(self, name: str, wrapped: str) -> bytes:
        """Return the data key. Raises DecryptionError if the KMS cannot decrypt it."""
        wrapped_version(wrapped)
        return self._call("decrypt", name, self._path("decrypt", name), _read_key, {"ciphertext": wrapped})

    def rewrap(self, name: str, wrapped: str) -> str:
        """Return the same data key, wrapped with the newest version of the KMS's key. Raises DecryptionError."""
        wrapped_version(wrapped)
        return self._call("rewrap", name, self._path("rewrap", name), _read_wrapped, {"ciphertext": wrapped})

    def derive(self, name: str, label: str) -> bytes:
        """Return a key for hashes, which only the KMS can make: the HMAC of the label."""
        label_b64 = base64.b64encode(label.encode()).decode()
        return self._call("hmac", name, self._path("hmac", name), _read_hmac, {"input": label_b64})

    def _path(self, verb: str, name: str) -> str:
        return f"{self._settings.mount}/{verb}/{name}"

    def _call(
        self,
        operation: str,
        key: str,
        path: str,
        read: Callable[[Mapping[str, Any]], _T],
        body: Mapping[str, Any] | None = None,
    ) -> _T:
        if monotonic() < self._away_until:
            raise KeysUnavailableError(self._away_because)
        for outcome in _OUTCOMES:  # at 0, because Prometheus misses the first increment of a new series
            REQUESTS.labels(operation, key, outcome)
        outcome = "ok"
        try:
            return read(_within(self._settings.timeout_s, lambda: self._request(path, body)))
        except KeysUnavailableError as error:
            outcome = "unavailable"
            self._away_because = str(error)
            self._away_until = monotonic() + _AWAY_S
            raise
        except DecryptionError:
            outcome = "refused"
            raise
        finally:
            REQUESTS.labels(operation, key, outcome).inc()
            FAILING.labels(operation, key).set(outcome == "unavailable")

    def _request(self, path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
        settings = self._settings
        headers = {"X-Vault-Token": _read_token(settings.token_file), "X-Vault-Request": "true"}
        if settings.namespace:
            headers["X-Vault-Namespace"] = settings.namespace
        session = requests.Session()
        session.trust_env = (
            False  # no proxy, and no other trust, from variables that are meant for something else
        )
        try:
            with session.request(
                "GET" if body is None else "POST",
                f"{settings.url}/v1/{path}",
                json=body,
                headers=headers,
                timeout=settings.timeout_s,
                verify=str(settings.ca_file) if settings.ca_file else True,
                allow_redirects=False,
                stream=True,
            ) as response:
                text = _read_bounded(response)
                status = response.status_code
        except requests.RequestException as error:
            raise KeysUnavailableError(f"the KMS does not answer ({type(error).__name__})") from error
        finally:
            session.close()
        return _read_answer(status, text, path)


def _within(timeout_s: float, call: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Call it in a thread, for `timeout_s` in all: a socket's own limit starts again with every byte."""
    answers: SimpleQueue[Mapping[str, Any] | Exception] = SimpleQueue()

    def run() -> None:
        try:
            answers.put(call())
        except Exception as error:  # noqa: BLE001  raised again by the caller
            answers.put(error)

    threading.Thread(target=run, name="kms", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_s)
    except Empty:
        raise KeysUnavailableError(f"the KMS did not answer within {timeout_s:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _read_token(path: Path) -> str:
    """Read the token anew for each call: an agent may renew it."""
    try:
        with path.open(errors="replace") as file:
            token = file.read(_MAX_TOKEN_BYTES).strip()
    except OSError as error:
        raise KeysUnavailableError(f"TRANSIT_TOKEN_FILE cannot be read: {error.strerror}") from error
    if not _TOKEN.fullmatch(token):
        raise KeysUnavailableError("TRANSIT_TOKEN_FILE holds no token")
    return token


def _read_bounded(response: requests.Response) -> bytes:
    text = b""
    for chunk in response.iter_content(4096):
        text += chunk
        if len(text) > _MAX_RESPONSE_BYTES:
            raise KeysUnavailableError("the KMS answered with too much")
    return text


def _read_answer(status: int, text: bytes, path: str) -> Mapping[str, Any]:
    try:
        answer = parse_json_object(text) if text else {}
    except InvalidJsonError as error:
        raise KeysUnavailableError(f"the KMS answered {status} without JSON") from error
    if status == requests.codes.ok:
        data = answer.get("data")
        if not isinstance(data, Mapping):
            raise KeysUnavailableError("the KMS answered without data")
        return data
    errors = " ".join(str(one) for one in answer.get("errors") or ()).lower()
    is_about_text = status == requests.codes.bad_request and "not found" not in errors
    if is_about_text and "/datakey/" not in path and "/hmac/" not in path:
        # Its words are not repeated: they may quote what was sent.
        raise DecryptionError(
            "the KMS cannot decrypt the data key: another key, or a version that was disabled?"
        )
    raise KeysUnavailableError(_explain(status, path))


def _explain(status: int, path: str) -> str:
    if status == requests.codes.forbidden:
        return f"the KMS refuses the token of TRANSIT_TOKEN_FILE for {path}"
    if status in (requests.codes.not_found, requests.codes.bad_request):
        return f"the KMS has no {path}: does the key exist, and is TRANSIT_MOUNT right?"
    return f"the KMS answered {status}"


def _read_data_key(data: Mapping[str, Any]) -> DataKey:
    return DataKey(_read_key(data), _read_wrapped(data))


def _read_key(data: Mapping[str, Any]) -> bytes:
    try:
        key = base64.b64decode(str(data.get("plaintext")), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise KeysUnavailableError("the KMS answered without a key of 256 bits")
    return key


def _read_wrapped(data: Mapping[str, Any]) -> str:
    wrapped = data.get("ciphertext")
    if not isinstance(wrapped, str) or not _WRAPPED.fullmatch(wrapped):
        raise KeysUnavailableError("the KMS answered without a wrapped key")
    return wrapped


def _read_hmac(data: Mapping[str, Any]) -> bytes:
    answer = data.get("hmac")
    if not isinstance(answer, str) or not _WRAPPED.fullmatch(answer):
        raise KeysUnavailableError("the KMS answered without an HMAC")
    return hashlib.sha256(answer.partition(":")[2].encode()).digest()
