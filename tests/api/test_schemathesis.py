"""Schemathesis reads the OpenAPI document and calls the API in many ways, with all its checks on.

A few examples for each operation run in the test's process; many run against the API as in production. There
are two merchants, so that each also tries the intents of the other.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import requests
import schemathesis
from schemathesis.checks import CHECKS
from schemathesis.engine import Status, events, from_schema
from schemathesis.engine.run import PhaseName

from services.api.app import BASE_PATH, make_app
from shared.platform.database.pool import Database
from shared.platform.settings import Settings
from stack.ports import find_free_ports
from tests.api.conftest import MakeApplication, credentials_of
from tests.api.running_api import running_api
from tests.servers import serve

_FEW = 5
_IS_DATE_TIME = jsonschema_rs.validator_for({"type": "string", "format": "date-time"}, validate_formats=True)


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]
) -> None:
    """Correct what JSON Schema cannot express: the window of `expires_at`, and that 2539.0 is not an integer."""
    body: Any = case.body
    if not isinstance(body, dict):
        return
    if _IS_DATE_TIME.is_valid(body.get("expires_at")):
        body["expires_at"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    if isinstance(body.get("amount"), float) and body["amount"].is_integer():
        body["amount"] = int(body["amount"])


@dataclass
class Outcome:
    """The result of a whole run of Schemathesis."""

    problems: list[str] = field(default_factory=list)
    phases: dict[PhaseName, Status] = field(default_factory=dict)
    checks: set[str] = field(default_factory=set)
    answers: set[tuple[str, int]] = field(default_factory=set)

    def take(self, event: events.EngineEvent) -> None:
        if isinstance(event, events.PhaseFinished):
            self.phases[event.phase.name] = event.status
        elif isinstance(event, events.NonFatalError):
            self.problems.append(f"{event.label}: {event.value!r}")
        elif isinstance(event, events.FatalError):
            raise event.exception
        elif isinstance(event, events.ScenarioFinished):
            self._take_scenario(event)

    def _take_scenario(self, event: events.ScenarioFinished) -> None:
        recorded = event.recorder
        for case_id, interaction in recorded.interactions.items():
            if interaction.response is not None:
                label = recorded.cases[case_id].value.operation.label
                self.answers.add((label, interaction.response.status_code))
        for check in (check for checks in recorded.checks.values() for check in checks):
            self.checks.add(check.name)
            if check.failure_info is not None:
                failure = check.failure_info.failure
                self.problems.append(f"{check.name}: {failure.message}\n{check.failure_info.code_sample}")


@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(_FEW, id="few"),
        pytest.param(400, id="many", marks=[pytest.mark.long, pytest.mark.stack]),
    ],
)
def test_api_responds_as_documented_to_any_request(
    settings: Settings, database: Database, make_application: MakeApplication, tmp_path: Path, examples: int
) -> None:
    peers = tmp_path / "peers.json"
    peers.write_text(json.dumps({"auth": [_peer(name, make_application) for name in ("coffee", "books")]}))
    outcome = Outcome()
    with _served(settings, database, as_processes=examples > _FEW) as url:
        for event in from_schema(_schema(url, peers, examples)).execute():
            outcome.take(event)
    assert outcome.problems == []
    assert set(outcome.phases) == set(PhaseName)
    assert set(outcome.phases.values()) == {Status.SUCCESS}
    assert outcome.checks == set(CHECKS.get_all_names())
    # The run must have reached all of these.
    assert outcome.answers >= {
        ("POST /payment-intents", 201),
        ("POST /payment-intents", 200),
        ("POST /payment-intents", 401),
        ("POST /payment-intents", 405),
        ("POST /payment-intents", 422),
        ("GET /payment-intents/{paymentIntent}", 200),
        ("GET /payment-intents/{paymentIntent}", 401),
        ("GET /payment-intents/{paymentIntent}", 403),
        ("GET /payment-intents/{paymentIntent}", 404),
        ("GET /openapi.json", 200),
    }


def _peer(name: str, make_application: MakeApplication) -> Mapping[str, Any]:
    headers = credentials_of(make_application(name)).items()
    return {"name": name, "fixedHeaders": [{"name": header, "value": value} for header, value in headers]}


@contextmanager
def _served(settings: Settings, api_database: Database, *, as_processes: bool) -> Iterator[str]:
    """Serve the API in this process or in others, and yield its base URL."""
    if as_processes:
        with running_api(settings.database) as api:
            yield f"http://127.0.0.1:{api.port}{BASE_PATH}"
    else:
        (port,) = find_free_ports(1)
        with serve(make_app(settings, api_database), port):
            yield f"http://127.0.0.1:{port}{BASE_PATH}"


def _schema(base_url: str, peers: Path, examples: int) -> schemathesis.BaseSchema:
    # Responses differ between runs, so they are not used to generate requests: every run is the same.
    # Only the stateful phase, which retrieves what it created, uses responses.
    same_every_time = {"extra-data-sources": {"responses": False}}
    config = schemathesis.Config.from_dict(
        {
            "base-url": base_url,
            "seed": 1,
            "generation": {"max-examples": examples, "deterministic": True, "database": "none"},
            "phases": {"examples": same_every_time, "coverage": same_every_time, "fuzzing": same_every_time},
            "cache": {"enabled": False},
            "auth": {"wfc": {"path": str(peers), "peers": ["coffee", "books"]}},
        }
    )
    # Not loaded from its URL: then Schemathesis would leave out the operation at that URL.
    document = requests.get(f"{base_url}/openapi.json", timeout=10).json()
    return schemathesis.openapi.from_dict(document, config=config)
