"""The figures of the runs of `make chaos`, the verdict of its live line, and the findings of the audit."""

import json
from pathlib import Path

from chaos.history import CreateAnswered, History, IntentSeen, RunStarted
from chaos.judge.verdict import summarise
from chaos.live_verdict import describe_findings
from chaos.settling import read_findings
from chaos.totals import add_run

STARTED = RunStarted(
    at=1.0, seed=7, seconds=60, brokers=3, retry_delays=(1.0,), settle_seconds=9, commit="abc"
)


def create(uuid: str) -> CreateAnswered:
    seen = IntentSeen(
        uuid=uuid,
        merchant_reference="r",
        amount=1000,
        status="requires_payment_method",
        expires_at=86402.0,
        updated_at=2.0,
    )
    return CreateAnswered(
        at=2.0,
        application="a",
        began_at=2.0,
        merchant_reference="r",
        amount=1000,
        http_status=201,
        intent=seen,
    )


def test_runs_add_up_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    run = {**summarise([STARTED, create("u")]).as_json(), "faults": {"kill": 2, "cut": 1}}
    add_run(path, run)
    add_run(path, {**run, "lost": 1})
    content = json.loads(path.read_text())
    totals = content["totals"]
    assert (totals["runs"], totals["seconds"], totals["faults"], totals["creates"]) == (2, 120, 6, 2)
    assert totals["lost"] == 1
    assert [each["seed"] for each in content["runs"]] == [7, 7]


def test_the_live_line_names_what_the_judge_has_found_so_far(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path)
    history.add(STARTED)
    history.add(create("u"))
    assert describe_findings(path) == "no findings so far"
    history.add(create("another"))
    history.close()
    assert "one-reference-one-intent" in describe_findings(path)


def test_the_findings_of_the_audit_are_read_from_its_json_or_its_error() -> None:
    found = {"findings": [{"check": "c", "id": "i", "detail": "d"}], "not_checked": "the ledger"}
    assert read_findings(json.dumps(found), "") == ["c i: d", "not checked: the ledger"]
    assert read_findings(json.dumps({"findings": [], "not_checked": None}), "") == []
    assert read_findings("", "Error: no database\n") == ["Error: no database"]
