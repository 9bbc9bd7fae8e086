"""The breakages of `make chaos-breakages` fit today's product, and a run on a copy is read rightly."""

import subprocess
import sys
from pathlib import Path

import pytest

from chaos import breakages
from chaos.breakages import BREAKAGES, main
from chaos.broken_copy import (
    Breakage,
    EditError,
    Outcome,
    apply_edit,
    format_table,
    make_copy,
    named_rules,
    run_copy,
)
from chaos.judge.verdict import STATEMENTS
from stack.programs import PROJECT

DOUBLED = Breakage(
    name="charged twice",
    file="product.py",
    old="charges = 1",
    new="charges = 2",
    harm="A customer pays twice.",
    rules=("paid-once",),
)
REPORT = """\
seed 7, 120 s, commit abc, 9 records
creates            4  acknowledged with 201, of 5 requests
     0  paid-charge-is-succeeded-intent: The intent of every paid charge at the bank is succeeded.
    12  paid-once: An intent has at most one paid charge that is not reported as a duplicate.
     1  no-such-rule: Is not one of the judge's.
"""
JUDGE = """
import sys
from product import charges
print(f"{charges - 1:>6}  paid-once: An intent has at most one paid charge.")
sys.exit(1 if charges > 1 else 0)
"""


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda one: one.directory_name)
def test_a_breakage_applies_to_the_product_and_compiles(breakage: Breakage) -> None:
    assert breakage.file.startswith(("services/", "shared/"))
    text = (PROJECT / breakage.file).read_text()
    broken = apply_edit(breakage, text)
    assert broken != text
    compile(broken, breakage.file, "exec", dont_inherit=True)


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda one: one.directory_name)
def test_the_rules_that_should_name_a_breakage_exist(breakage: Breakage) -> None:
    assert breakage.rules
    assert set(breakage.rules) <= STATEMENTS.keys()


def test_there_are_ten_or_more_breakages_with_different_names() -> None:
    names = {breakage.directory_name for breakage in BREAKAGES}
    assert len(names) == len(BREAKAGES) >= 10


@pytest.mark.parametrize(("text", "times"), [("charges = 3", 0), ("charges = 1\ncharges = 1", 2)])
def test_an_edit_needs_its_text_exactly_once(text: str, times: int) -> None:
    with pytest.raises(EditError, match=rf"charged twice: product.py has the text {times} times"):
        apply_edit(DOUBLED, text)


def test_the_rules_with_findings_are_read_from_the_report() -> None:
    assert named_rules(REPORT) == ("paid-once",)


@pytest.mark.parametrize(
    ("exit_status", "named", "is_caught"),
    [
        (1, ("paid-once", "settles-in-time"), True),
        (1, ("settles-in-time",), False),  # something else was found
        (1, (), False),  # the run itself failed
        (0, (), False),
        (2, ("paid-once",), False),  # the history is not complete
        (None, (), False),
    ],
)
def test_caught_is_what_an_expected_rule_names(
    exit_status: int | None, named: tuple[str, ...], is_caught: bool
) -> None:
    assert Outcome(DOUBLED, exit_status, 1.0, named).is_caught is is_caught


def test_a_run_without_a_verdict_in_time_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    outcome = run_copy(DOUBLED, tmp_path, command, tmp_path / "output.txt", limit_s=0.5)
    assert outcome.exit_status is None
    assert "no verdict in time" in format_table([outcome])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose `python -m chaos` finds that customers are charged twice."""
    root = tmp_path / "project"
    (root / "chaos").mkdir(parents=True)
    (root / "chaos" / "__main__.py").write_text(JUDGE)
    (root / "product.py").write_text("charges = 1\n")
    (root / ".gitignore").write_text("secret\n")
    (root / "secret").touch()
    (root / ".venv").mkdir()
    for arguments in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *arguments], cwd=root, check=True)
    monkeypatch.setattr(breakages, "PROJECT", root)
    return root


def test_a_copy_has_the_tracked_files_and_the_mistake(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    make_copy(project, copy, DOUBLED)
    assert (copy / "product.py").read_text() == "charges = 2\n"
    assert (project / "product.py").read_text() == "charges = 1\n"
    assert (copy / ".venv").resolve() == project / ".venv"
    assert not (copy / "secret").exists()


def run_main(monkeypatch: pytest.MonkeyPatch, breakage: Breakage, directory: Path) -> int:
    monkeypatch.setattr(breakages, "BREAKAGES", (breakage,))
    return main([breakage.directory_name, f"--directory={directory}"])


@pytest.mark.usefixtures("project")
def test_what_was_caught_is_printed_as_a_table_and_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main(monkeypatch, DOUBLED, tmp_path / "runs") == 0
    assert "| charged twice | A customer pays twice. | `paid-once` | " in capsys.readouterr().out
    assert not (tmp_path / "runs" / "charged-twice").exists()


@pytest.mark.usefixtures("project")
def test_what_was_not_caught_fails_and_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harmless = Breakage("harmless", "product.py", "charges = 1", "charges = 1 * 1", "None.", ("paid-once",))
    assert run_main(monkeypatch, harmless, tmp_path / "runs") == 1
    assert "| not caught: exit status 0 | " in capsys.readouterr().out
    assert "paid-once" in (tmp_path / "runs" / "harmless" / "output.txt").read_text()


@pytest.mark.usefixtures("project")
def test_an_edit_that_is_not_found_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = Breakage("lost", "product.py", "charges = 9", "", "None.", ("paid-once",))
    assert run_main(monkeypatch, lost, tmp_path / "runs") == 2
    assert "lost: product.py has the text 0 times" in capsys.readouterr().err


def test_an_unknown_name_ends_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """All others are known, also those with a hyphen of their own."""
    assert main([*(breakage.directory_name for breakage in BREAKAGES), "no-such-breakage"]) == 2
    assert "Unknown: no-such-breakage. There are: attempt-forgotten," in capsys.readouterr().err
