"""The totals of the runs of `make chaos`, and the findings of the audit."""

import json
from pathlib import Path

import pytest

from chaos.history import CreateAnswered, FaultBegan, Record, RunStarted, WebhookReceived
from chaos.settling import read_findings
from chaos.totals import add_run, count_run

STARTED = RunStarted(
    at=1.0, seed=7, seconds=60, brokers=3, retry_delays=(1.0,), settle_seconds=9, commit="abc"
)


def create(status: int | None) -> CreateAnswered:
    return CreateAnswered(
        at=2.0,
        application="a",
        began_at=1.0,
        merchant_reference="r",
        amount=1000,
        http_status=status,
        intent=None,
    )


def records() -> list[Record]:
    fault = FaultBegan(at=2.0, number=1, fault="kill", target="api-1", details="")
    receipt = WebhookReceived(
        at=3.0, application="a", url="u", connection=1, signature=None, body="", answer="200"
    )
    return [STARTED, create(201), create(200), create(None), fault, fault, receipt]


def test_new_intents_faults_and_requests_at_receivers_are_counted() -> None:
    run = count_run(records(), judge_status=0)
    assert (run.payments, run.faults, run.deliveries) == (1, 2, 1)
    assert run.faults_by_kind == {"kill": 2}


def test_a_history_without_a_beginning_is_refused() -> None:
    with pytest.raises(ValueError, match="RunStarted"):
        count_run(records()[1:], judge_status=0)


def test_runs_accumulate_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    add_run(path, count_run(records(), judge_status=0))
    add_run(path, count_run(records(), judge_status=1))
    content = json.loads(path.read_text())
    assert content["totals"] == {
        "seconds": 120,
        "faults": 4,
        "payments": 2,
        "deliveries": 2,
        "runs_with_findings": 1,
    }
    assert [run["seed"] for run in content["runs"]] == [7, 7]


def test_the_findings_of_the_audit_are_read_from_its_json_or_its_error() -> None:
    found = {"findings": [{"check": "c", "id": "i", "detail": "d"}], "not_checked": "the ledger"}
    assert read_findings(json.dumps(found), "") == ["c i: d", "not checked: the ledger"]
    assert read_findings(json.dumps({"findings": [], "not_checked": None}), "") == []
    assert read_findings("", "Error: no database\n") == ["Error: no database"]
