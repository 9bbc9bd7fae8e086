"""Runs clients/cases.json with the client of one language, and compares the results.

A client runs in a runner, a program or a function: it gets a list of operations and returns a list of results.

    operation   {"call": "create" | "retrieve" | "verify", "client": {…}, "arguments": {…}}
    result      {"intent": {…}} or {"event": {…}} or {"error": kind, "status": …, …}; with "pauses" between the tries
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mizan_client import __version__
from stack.ports import find_free_ports
from tests.clients.scripted_server import Script, ScriptedServer

CLIENTS = Path(__file__).parents[2] / "clients"
Operation = Mapping[str, Any]
Result = Mapping[str, Any]
Runner = Callable[[Sequence[Operation]], Sequence[Result]]
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00Z")
_TIMES = ("expires_at", "created_at", "updated_at")


class SharedCases:
    """The table, and one method for each part of it."""

    def __init__(self, language: str, run: Runner, subtests: pytest.Subtests) -> None:
        self._language = language
        self._run = run
        self._subtests = subtests
        self._table = json.loads((CLIENTS / "cases.json").read_text())

    def check_signatures(self) -> None:
        cases = self._table["signatures"]
        operations = [
            verify(
                bytes.fromhex(case["body_hex"]) if "body_hex" in case else case["body"].encode(),
                case["signature"],
                case["secrets"],
            )
            for case in cases
        ]
        for case, result in zip(cases, self._run(operations), strict=True):
            with self._subtests.test(case["name"]):
                found = {name: value for name, value in result.items() if name in ("event", "error")}
                assert found == case["expected"], result

    def check_arguments(self) -> None:
        """Arguments that cannot be used are refused before a request is sent."""
        cases = self._table["arguments"]
        operations = [retrieve(case["client"], case["uuid"]) for case in cases]
        for case, result in zip(cases, self._run(operations), strict=True):
            with self._subtests.test(case["name"]):
                assert result["error"] == "argument", result

    def check_intents(self) -> None:
        cases = self._table["intents"]
        calls = [
            {"call": "create", "steps": [{"status": 201, "json": {"data": case["data"]}}]} for case in cases
        ]
        for case, (result, _) in zip(cases, self._run_calls(calls), strict=True):
            with self._subtests.test(case["name"]):
                assert result.get("intent") == expected_intent(case["data"]), result

    def check_errors(self) -> None:
        cases = self._table["errors"]
        calls = [{"call": case["call"], "retries": 0, "steps": [case["response"]]} for case in cases]
        for case, (result, script) in zip(cases, self._run_calls(calls), strict=True):
            with self._subtests.test(case["name"]):
                expected = {**case["expected"], "pauses": []}
                if expected["request_id"] is None:  # the response had none: the one that was sent
                    expected["request_id"] = script.requests[0].headers["x-request-id"]
                assert result == expected
                assert len(script.requests) == 1

    def check_retries(self) -> None:
        cases = self._table["retries"]
        for case, (result, script) in zip(cases, self._run_calls(cases), strict=True):
            with self._subtests.test(case["name"]):
                wanted = case["expected"]
                assert ("intent" if "intent" in result else result["error"]) == wanted["result"], result
                assert len(result["pauses"]) == len(wanted["pauses"])
                for pause, (shortest, longest) in zip(result["pauses"], wanted["pauses"], strict=True):
                    assert shortest <= pause <= longest, result["pauses"]
                # On a busy machine, a try can end before the server has seen its request.
                if not any("hang" in step for step in case["steps"]):
                    assert len(script.requests) == len(case["steps"])
                if wanted["result"] == "connection":
                    assert result["message"] == "The API did not respond."
                    sent = {request.headers["x-request-id"] for request in script.requests}
                    assert sent <= {result["request_id"]}
                self._check_requests(case["call"], script)

    def _run_calls(self, calls: Sequence[Mapping[str, Any]]) -> list[tuple[Result, Script]]:
        """Run calls of the API, each with a script of its own, and return the results with the scripts."""
        with ScriptedServer(self._table["intent"]) as server:
            operations, scripts = [], []
            for call in calls:
                base_url, script = server.add(call["steps"])
                if call.get("nothing_listens"):
                    base_url = f"http://127.0.0.1:{find_free_ports(1)[0]}/api/v1"
                client = {
                    "base_url": base_url,
                    "api_key": "pk_shop",
                    "access_token": "at_shop",
                    "timeout": call.get("timeout", 30),
                    "retries": call.get("retries", 3),
                }
                scripts.append(script)
                operations.append(self._operation(call["call"], client))
            return list(zip(self._run(operations), scripts, strict=True))

    def _operation(self, call: str, client: Mapping[str, Any]) -> Operation:
        intent = self._table["intent"]
        if call == "retrieve":
            return retrieve(client, intent["uuid"])
        return create(
            client,
            merchant_reference=intent["merchant_reference"],
            amount=intent["amount"],
            description=intent["description"],
            return_url=intent["return_url"],
            customer_external_id=intent["customer"]["external_id"],
            metadata=intent["metadata"],
            expires_at=intent["created_at"],
        )

    def _check_requests(self, call: str, script: Script) -> None:
        """Check what was sent. All tries of a call send the same."""
        intent = self._table["intent"]
        for request in script.requests:
            headers = request.headers
            assert request.body == script.requests[0].body
            assert headers["x-request-id"] == script.requests[0].headers["x-request-id"]
            assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", headers["x-request-id"])
            assert (headers["x-api-key"], headers["authorization"]) == ("pk_shop", "Bearer at_shop")
            assert headers["accept"] == "application/json"
            assert headers["user-agent"] == f"mizan-client-{self._language}/{__version__}"
            if call == "retrieve":
                assert (request.method, request.body) == ("GET", b"")
                assert request.path == f"/api/v1/payment-intents/{intent['uuid']}"
                continue
            assert (request.method, request.path) == ("POST", "/api/v1/payment-intents")
            assert headers["content-type"] == "application/json"
            body = json.loads(request.body)
            assert datetime.fromisoformat(body.pop("expires_at")) == datetime.fromisoformat(
                intent["created_at"]
            )
            same = (
                "merchant_reference",
                "amount",
                "currency",
                "description",
                "return_url",
                "customer",
                "metadata",
            )
            assert body == {name: intent[name] for name in same}


def create(client: Mapping[str, Any], **arguments: Any) -> Operation:
    return {"call": "create", "client": client, "arguments": arguments}


def retrieve(client: Mapping[str, Any], uuid: str) -> Operation:
    return {"call": "retrieve", "client": client, "arguments": {"uuid": uuid}}


def verify(body: bytes, signature: str | None, secrets: str | Sequence[str]) -> Operation:
    return {
        "call": "verify",
        "arguments": {"body_hex": body.hex(), "signature": signature, "secrets": secrets},
    }


def expected_intent(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a runner for this intent: the known fields, and times in milliseconds."""
    known = (
        *(
            "uuid",
            "reference",
            "merchant_reference",
            "amount",
            "currency",
            "status",
            "description",
            "customer",
        ),
        *("return_url", "metadata", "expires_at", "checkout_url", "created_at", "updated_at"),
    )
    return {name: _milliseconds(data[name]) if name in _TIMES else data[name] for name in known}


def _milliseconds(moment: str | None) -> int | None:
    return None if moment is None else (datetime.fromisoformat(moment) - _EPOCH) // timedelta(milliseconds=1)
