"""A stand-in for a KMS: speaks the Transit API of HashiCorp Vault, with real AES-GCM, and fails as a test says."""

import base64
import hashlib
import hmac
import json
import os
import re
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shared.platform.settings import TransitSettings

TOKEN = "hvs.token-of-the-test"
NAMES = ("mizan-webhook-secrets", "mizan-provider-credentials", "mizan-customer-data")


@dataclass
class TransitKey:
    versions: list[bytes] = field(default_factory=lambda: [os.urandom(32)])
    min_decryption_version: int = 1

    def rotate(self) -> None:
        self.versions.append(os.urandom(32))

    def wrap(self, plain: bytes) -> str:
        nonce = os.urandom(12)
        sealed = nonce + AESGCM(self.versions[-1]).encrypt(nonce, plain, None)
        return f"vault:v{len(self.versions)}:{base64.b64encode(sealed).decode()}"

    def unwrap(self, wrapped: str) -> bytes:
        """Raises ValueError, as Vault answers 400."""
        found = re.fullmatch(r"vault:v(\d+):(.+)", wrapped)
        version = int(found[1]) if found else 0
        if not self.min_decryption_version <= version <= len(self.versions) or found is None:
            raise ValueError("ciphertext version is disallowed by policy (too old)")
        sealed = base64.b64decode(found[2])
        try:
            return AESGCM(self.versions[version - 1]).decrypt(sealed[:12], sealed[12:], None)
        except InvalidTag:
            raise ValueError("cipher: message authentication failed") from None


@dataclass(frozen=True)
class RawAnswer:
    """An answer that the stand-in gives to every call instead of its own."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class TransitServer:
    """`calls` has the path of every call. Each attribute can be changed while it runs."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.keys = {name: TransitKey() for name in NAMES}
        self.tokens: dict[str, list[str] | None] = {TOKEN: None}
        """Token → the paths that it may call; None means all."""
        self.answer: RawAnswer | None = None
        self.is_away = False
        """It closes every connection without an answer."""
        self.stalls = threading.Event()
        """While it is set, calls get the head of an answer, and then one byte after the other, without an end."""
        self.calls: list[str] = []
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"kms": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["TransitServer"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stalls.clear()
            self.released.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def count(self, verb: str) -> int:
        return sum(f"/{verb}/" in path for path in self.calls)

    def settings(self, directory: Path, **more: Any) -> TransitSettings:
        token_file = directory / "transit_token"
        if not token_file.exists():
            token_file.write_text(f"{TOKEN}\n")
        return TransitSettings(**{"url": self.url, "token_file": token_file, "start_s": 0.0, **more})

    def act(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the data of the answer. Raises KeyError for an unknown path or key, ValueError for a wrong text."""
        if path == "/v1/auth/token/lookup-self":
            return {"id": "…"}
        found = re.fullmatch(r"/v1/transit/(datakey/plaintext|decrypt|rewrap|hmac)/([a-z-]+)", path)
        if found is None:
            raise KeyError(path)
        verb, key = found[1], self.keys[found[2]]
        if verb == "datakey/plaintext":
            plain = os.urandom(int(body.get("bits", 256)) // 8)
            return {"plaintext": base64.b64encode(plain).decode(), "ciphertext": key.wrap(plain)}
        if verb == "hmac":
            digest = hmac.digest(key.versions[-1], base64.b64decode(body["input"]), hashlib.sha256)
            return {"hmac": f"vault:v{len(key.versions)}:{base64.b64encode(digest).decode()}"}
        plain = key.unwrap(body["ciphertext"])
        if verb == "decrypt":
            return {"plaintext": base64.b64encode(plain).decode()}
        return {"ciphertext": key.wrap(plain), "key_version": len(key.versions)}


class _Handler(BaseHTTPRequestHandler):
    kms: TransitServer

    def do_GET(self) -> None:
        self._handle({})

    def do_POST(self) -> None:
        self._handle(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _handle(self, body: Mapping[str, Any]) -> None:
        kms = self.kms
        kms.calls.append(self.path)
        if kms.is_away:
            self.close_connection = True
            return
        if kms.stalls.is_set():
            self._stall()
            return
        if kms.answer is not None:
            self._send(kms.answer)
            return
        token = self.headers["X-Vault-Token"]
        allowed = kms.tokens.get(token, [])
        if allowed is not None and self.path not in allowed:
            self._send_json(403, {"errors": [f"permission denied for {token}"]})
            return
        try:
            self._send_json(200, {"data": kms.act(self.path, body)})
        except KeyError:
            self._send_json(404, {"errors": []})
        except ValueError as error:
            self._send_json(400, {"errors": [str(error)]})

    def _stall(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while self.kms.stalls.is_set():
            try:
                self.wfile.write(b" ")
            except OSError:
                return
            self.kms.released.wait(0.05)

    def _send_json(self, status: int, answer: Mapping[str, Any]) -> None:
        self._send(RawAnswer(status, json.dumps(answer).encode()))

    def _send(self, answer: RawAnswer) -> None:
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""
