"""The Python client: how the shared tests run it, and its wheel. test_all.py has what all clients have in common."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from shutil import copytree
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import pytest

from mizan_client import (
    ApiConnectionError,
    ApiError,
    AuthenticationError,
    ForbiddenError,
    InvalidRequestError,
    InvalidWebhookError,
    MizanClient,
    NotFoundError,
    PaymentIntent,
    RateLimitedError,
    ServerError,
    SignatureError,
    __version__,
    verify_webhook,
)
from shared import VERSION
from shared.domain.deliveries.signing import build_body, sign_body, signing_key
from tests.clients.real_api import RealApi
from tests.clients.shared_cases import CLIENTS, Operation, Result
from tests.readme.documents import Document

_KINDS: Mapping[type[Exception], str] = {
    ApiConnectionError: "connection",
    ApiError: "api",
    AuthenticationError: "authentication",
    ForbiddenError: "forbidden",
    InvalidRequestError: "invalid_request",
    InvalidWebhookError: "invalid_webhook",
    NotFoundError: "not_found",
    RateLimitedError: "rate_limited",
    ServerError: "server",
    SignatureError: "signature",
    ValueError: "argument",
}


def run_operations(operations: Sequence[Operation]) -> list[Result]:
    return [_run(operation) for operation in operations]


def _run(operation: Operation) -> Result:
    pauses: list[float] = []
    try:
        return {**_call(operation, pauses), "pauses": pauses}
    except tuple(_KINDS) as error:
        known = ("status", "message", "errors", "request_id", "retry_after")
        values = {name: getattr(error, name) for name in known if hasattr(error, name)}
        return {"error": _KINDS[type(error)], **values, "pauses": pauses}


def _call(operation: Operation, pauses: list[float]) -> dict[str, Any]:
    arguments = dict(operation["arguments"])
    if operation["call"] == "verify":
        body = bytes.fromhex(arguments["body_hex"])
        return {"event": asdict(verify_webhook(body, arguments["signature"], arguments["secrets"]))}
    with MizanClient(**operation["client"], sleep=pauses.append) as client:
        if operation["call"] == "retrieve":
            return {"intent": _as_result(client.retrieve_payment_intent(arguments["uuid"]))}
        if "expires_at" in arguments:
            arguments["expires_at"] = datetime.fromisoformat(arguments["expires_at"])
        return {"intent": _as_result(client.create_payment_intent(**arguments))}


def _as_result(intent: PaymentIntent) -> dict[str, Any]:
    values = asdict(intent)
    times = {name: value for name, value in values.items() if isinstance(value, datetime)}
    return {**values, **{name: int(value.timestamp() * 1000) for name, value in times.items()}}


def test_webhook_body_must_be_bytes() -> None:
    with pytest.raises(TypeError, match="raw_body must be bytes"):
        verify_webhook("{}", "", ["whsec_new"])  # type: ignore[arg-type]


def test_naive_expiry_is_refused() -> None:
    with (
        MizanClient("https://api.mizan.example/api/v1", "pk_shop", "at_shop") as client,
        pytest.raises(ValueError, match="time zone"),
    ):
        client.create_payment_intent("order-1", 1000, expires_at=datetime(2026, 11, 17))  # noqa: DTZ001


def test_text_of_an_error_has_its_fields_and_request() -> None:
    error = InvalidRequestError(422, "Not valid.", {"amount": ["Too small."]}, "req-1")
    assert str(error) == "Not valid. amount: Too small. (status 422, request req-1)"
    assert str(ApiConnectionError("req-2")) == "The API did not respond. (request req-2)"


def test_netrc_does_not_replace_the_access_token(
    real_api: RealApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    keys = real_api.application
    with MizanClient(real_api.base_url, keys.api_key, keys.access_token) as client:
        assert client.create_payment_intent("order-1", 1000).amount == 1000


def test_webhook_handler_of_the_readme() -> None:
    create, retrieve, handler = Document(CLIENTS / "python" / "README.md").code("python")
    for code in (create, retrieve):
        compile(code, "README.md", "exec")
    names: dict[str, Any] = {"__name__": "readme"}
    exec(handler, names)  # noqa: S102  our own README
    client, body = names["app"].test_client(), build_body("1", "payment_intent.succeeded", str(uuid4()))
    for content, signed, status in ((body, body, 200), (body, b"other", 401), (b"{}", b"{}", 400)):
        headers = {"Service-Signature": sign_body(signed, signing_key(names["SECRETS"][0]))}
        assert client.post("/webhooks/mizan", data=content, headers=headers).status_code == status


def test_wheel_has_the_package_and_its_types(tmp_path: Path) -> None:
    copytree(CLIENTS / "python", tmp_path / "source")
    build = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=tmp_path / "source", check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"mizan_client-{VERSION}-py3-none-any.whl"
    modules = {f"mizan_client/{path.name}" for path in (CLIENTS / "python/mizan_client").glob("*.py")}
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.startswith("mizan_client-")}
        metadata = archive.read(f"mizan_client-{VERSION}.dist-info/METADATA").decode()
    assert names == {*modules, "mizan_client/py.typed"}
    assert "Requires-Dist: requests>=2.32" in metadata
    assert __version__ == VERSION
