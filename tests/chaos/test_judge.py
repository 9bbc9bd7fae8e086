"""The verdict about a history, its figures, and the command that prints it."""

import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

import pytest

from chaos.history import (
    AuditEnded,
    History,
    LoadStopped,
    OutboxCounted,
    Record,
    RetrieveAnswered,
    RunStarted,
    SettlingEnded,
    read_history,
)
from chaos.judge.__main__ import main
from chaos.judge.rules import Rule
from chaos.judge.settling import AUDIT_AGREES
from chaos.judge.verdict import RULES, STATEMENTS, judge, summarise
from tests.chaos import test_judge_charges, test_judge_deliveries, test_judge_intents, test_judge_webhooks
from tests.chaos.planted import change_request, drop, retrieve
from tests.chaos.run_builder import START, SUCCEEDED, RunBuilder, delivery_id
from tests.chaos.sample_run import build_sample

_TABLES = (test_judge_charges, test_judge_deliveries, test_judge_intents, test_judge_webhooks)


def _write(path: Path, records: Sequence[Record]) -> Path:
    history = History(path)
    for record in records:
        history.add(record)
    history.close()
    return path


def test_nothing_is_found_in_a_correct_history() -> None:
    verdict = judge(build_sample())
    assert verdict.findings == []
    assert verdict.is_complete


def test_each_rule_has_a_damage_that_it_names() -> None:
    named = {rule for table in _TABLES for case in table.PLANTED for rule in case.rules}
    assert named | {AUDIT_AGREES} == set(STATEMENTS)


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_each_rule_states_in_one_sentence_what_must_hold(rule: Rule) -> None:
    assert rule.statement.endswith(".")
    assert "\n" not in rule.statement


def test_findings_have_a_subject_and_the_times() -> None:
    damaged = change_request(delivery_id("card", SUCCEEDED), signature="0" * 64)(build_sample())
    (finding,) = judge(damaged).findings
    assert finding.subject == delivery_id("card", SUCCEEDED)
    assert "15 08:00:13.000" in finding.sentence


def test_figures_of_a_run() -> None:
    assert summarise(build_sample()).as_json() == {
        "seed": 7,
        "seconds": 400,
        "commit": "0123abc",
        "faults": {"clock": 1, "kill": 1},
        "creates": 15,
        "payments": 16,
        "succeeded": 13,
        "canceled": 1,
        "charges": 15,
        "deliveries": 15,
        "receipts": 27,
        "repeats": 1,
        "lost": 0,
        "doubled": 0,
        "stuck": 0,
        "findings": 0,
    }


def test_damage_is_counted_as_lost() -> None:
    totals = summarise(drop(RetrieveAnswered, uuid="card", after_settling=True)(build_sample()))
    assert (totals.lost, totals.doubled, totals.stuck, totals.findings) == (1, 0, 0, 1)


def test_fault_that_could_not_be_made_is_a_note() -> None:
    assert any("no file system of its own" in note for note in judge(build_sample()).notes)


def test_verdict_so_far_names_what_the_end_cannot_change() -> None:
    """Before the end, deliveries may be pending and intents processing, but a final state must not change."""
    so_far = [one for one in build_sample() if one.at < START + 250]
    assert judge(so_far).findings == []
    damaged = retrieve("silent", "without-url", 200, "processing", 140)(so_far)
    assert [finding.rule for finding in judge(damaged).findings] == ["status-moves-as-allowed"]


def test_command_passes_a_correct_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(_write(tmp_path / "history", build_sample()))]) == 0
    printed = capsys.readouterr().out
    assert "27 requests received, 1 of them repeats" in printed
    assert "clock 1, kill 1" in printed
    assert all(f"     0  {rule.name}: {rule.statement}" in printed for rule in RULES)
    assert printed.endswith("PASSED: no findings\n")


def test_command_names_findings_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = drop(RetrieveAnswered, uuid="card", after_settling=True)(build_sample())
    assert main([str(_write(tmp_path / "history", damaged))]) == 1
    printed = capsys.readouterr().out
    assert "     1  final-state-is-known: " in printed
    assert "\nfinal-state-is-known: card: known since" in printed
    assert printed.endswith("FAILED: 1 findings; lost 1, doubled 0, stuck 0\n")


def test_command_shows_the_first_twenty_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunBuilder()
    for number in range(25):
        run.create("alpha", f"lost-{number}", 310)
    assert main([str(_write(tmp_path / "history", [*build_sample(), *run.records]))]) == 1
    printed = capsys.readouterr().out
    assert printed.count("\nfinal-state-is-known: ") == 20
    assert "and 5 more findings" in printed


@pytest.mark.parametrize("kind", [RunStarted, LoadStopped, SettlingEnded, OutboxCounted, AuditEnded])
def test_history_without_its_end_is_incomplete(
    kind: type[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(_write(tmp_path / "history", drop(kind)(build_sample())))]) == 2
    assert "INCOMPLETE: the history lacks the " in capsys.readouterr().out


def test_history_without_load_is_incomplete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing can be wrong where nothing happened."""
    kinds = (RunStarted, LoadStopped, SettlingEnded, OutboxCounted, AuditEnded)
    records = [one for one in build_sample() if isinstance(one, kinds)]
    assert main([str(_write(tmp_path / "history", records))]) == 2
    assert "a create that was acknowledged" in capsys.readouterr().out


def test_two_runs_in_one_file_are_not_judged_as_one(tmp_path: Path) -> None:
    path = _write(tmp_path / "history", build_sample())
    assert main([str(_write(path, build_sample()))]) == 2


def test_history_of_a_killed_run_cannot_be_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(tmp_path / "history", build_sample())
    path.write_text(path.read_text()[:-20])
    assert main([str(path)]) == 2
    assert "is cut off: the run was killed" in capsys.readouterr().err


def test_command_needs_one_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path / "missing")]) == 2
    assert "cannot judge" in capsys.readouterr().err


def _many(copies: int) -> Iterator[Record]:
    """Yield a correct history with many payments: each has a create, a click, a charge, two webhooks and its tries."""
    yield from build_sample()
    for number in range(copies):
        run = RunBuilder()
        run.attempts = 1000 + number
        uuid = f"many-{number}"
        run.pay("beta", uuid, 200)
        run.deliver("beta", uuid, SUCCEEDED, [(203, "500"), (204.5, "200")], secret="whsec_beta")
        yield from run.records


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_million_records_are_judged_in_bounded_time_and_memory(tmp_path: Path) -> None:
    path = tmp_path / "history"
    history = History(path)
    for record in _many(100_000):
        history.add(record)
    history.close()
    began = process_time()
    verdict = judge(read_history(path))
    took = process_time() - began
    peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{verdict.run.records} records in {took:.0f} s of a processor, {peak_gb:.1f} GB", file=sys.stderr)
    assert verdict.run.records > 1_000_000
    assert verdict.findings == []
    assert verdict.totals.creates > 100_000
    assert took < 150
    assert peak_gb < 3
