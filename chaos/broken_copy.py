"""A copy of the product with one mistake in it: how it is made, how `make chaos` runs on it, and what it found."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.judge.verdict import STATEMENTS

LIMIT_SECONDS = 600.0
"""How long a run may take until its verdict, with the start of the stack and settling."""
_STOP_SECONDS = 240.0
"""How long a run that was ended may take to stop its stack."""
_FOUND = 1
_COUNT = re.compile(r" *(\d+)  ([a-z-]+): ")
"""A line of the judge's report: how many findings a rule has."""


class EditError(Exception):
    """The text that a breakage replaces is not in its file exactly once."""


@dataclass(frozen=True)
class Breakage:
    """One mistake in the product."""

    name: str
    file: str
    """Its path in the project."""
    old: str
    """Occurs exactly once in the file."""
    new: str
    harm: str
    """What goes wrong, in one sentence."""
    rules: tuple[str, ...]
    """The rules of the judge of which at least one has to name it."""
    duration: int = 60
    """Seconds of load."""
    seed: int = 24
    """Of load and faults. Some mistakes show only at certain faults, which this seed has."""

    @property
    def directory_name(self) -> str:
        return self.name.replace(" ", "-")


@dataclass(frozen=True)
class Outcome:
    breakage: Breakage
    exit_status: int | None
    """Of `make chaos`; None if it had no verdict in time."""
    seconds: float
    """Until the verdict."""
    named: tuple[str, ...]
    """The rules with findings."""

    @property
    def is_caught(self) -> bool:
        """Whether the judge named what the breakage does. Findings of other rules only do not count."""
        return self.exit_status == _FOUND and not set(self.named).isdisjoint(self.breakage.rules)


def apply_edit(breakage: Breakage, text: str) -> str:
    """Return the text of the file with the mistake in it. Raises EditError."""
    count = text.count(breakage.old)
    if count != 1:
        raise EditError(
            f"{breakage.name}: {breakage.file} has the text {count} times instead of once:\n{breakage.old}"
        )
    return text.replace(breakage.old, breakage.new)


def make_copy(project: Path, copy: Path, breakage: Breakage) -> None:
    """Copy the tracked files of the project, link its .venv, and make the mistake. Raises EditError."""
    listed = subprocess.run(
        [shutil.which("git") or "git", "ls-files", "-z"], cwd=project, capture_output=True, check=True
    ).stdout
    for name in filter(None, os.fsdecode(listed).split("\0")):
        source, target = project / name, copy / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    if (project / ".venv").exists():
        (copy / ".venv").symlink_to((project / ".venv").resolve())
    edited = copy / breakage.file
    edited.write_text(apply_edit(breakage, edited.read_text()))


def chaos_command(breakage: Breakage, seed: int | None, directory: Path, port_base: int) -> list[str]:
    """Return the command of a run. `seed` is another one than that of the breakage."""
    return [
        *(sys.executable, "-m", "chaos", f"--duration={breakage.duration}"),
        *(f"--seed={breakage.seed if seed is None else seed}", f"--directory={directory}"),
        f"--port-base={port_base}",
    ]


def run_copy(
    breakage: Breakage,
    copy: Path,
    command: Sequence[str],
    output: Path,
    limit_s: float = LIMIT_SECONDS,
) -> Outcome:
    """Run the command in the copy, with its output in a file, and return what was found. It is ended at the limit."""
    began = time.monotonic()
    with output.open("wb") as log:
        process = subprocess.Popen(command, cwd=copy, stdout=log, stderr=subprocess.STDOUT)
        try:
            status: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            seconds = time.monotonic() - began
            _stop(process)
    named = named_rules(output.read_text(errors="replace"))
    return Outcome(breakage, status, seconds, named if status is not None else ())


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End a run that still goes on. It stops its stack, which takes a while."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def named_rules(output: str) -> tuple[str, ...]:
    """Return the rules that have findings, as the judge printed them."""
    counts = (_COUNT.match(line) for line in output.splitlines())
    return tuple(
        dict.fromkeys(found[2] for found in counts if found and int(found[1]) and found[2] in STATEMENTS)
    )


def format_table(outcomes: Sequence[Outcome]) -> str:
    """Return the table of docs/guarantees.md."""
    rows = [
        f"| {one.breakage.name} | {one.breakage.harm} | {_found(one)} | {one.seconds:.0f} s |"
        for one in outcomes
    ]
    return "\n".join(
        ["| breakage | what goes wrong | found by | verdict after |", "|---|---|---|---|", *rows]
    )


def _found(outcome: Outcome) -> str:
    if outcome.exit_status is None:
        return "not caught: no verdict in time"
    named = ", ".join(f"`{rule}`" for rule in outcome.named)
    if outcome.is_caught:
        return named
    return f"not caught: exit status {outcome.exit_status}" + (f", {named}" if named else "")
