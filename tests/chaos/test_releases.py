"""Services of the previous release and of this one share a database and Kafka, under load."""

from pathlib import Path

import pytest

from chaos.fault_plan import FaultKind
from chaos.history import FaultBegan, FaultEnded
from chaos.releases import Release, Releases
from stack.errors import StackError
from stack.programs import PROJECT
from tests.chaos.test_run import MOST_SECONDS, run_chaos

PREVIOUS_RELEASE = "728a6f5"
"""Until there is a release: the commit with which each service holds only what it needs."""
SECONDS = 60


def test_a_process_runs_from_the_first_release_until_it_is_changed_over(tmp_path: Path) -> None:
    releases = Releases(tmp_path, "HEAD", Release.PREVIOUS)
    env, directory, *command = releases.command("api-1", ("python", "-m", "services.api"))
    link = Path(directory.removeprefix("--chdir="))
    assert (env, command) == ("/usr/bin/env", ["python", "-m", "services.api"])
    assert (link / "services" / "api" / "__main__.py").is_file()
    assert link.resolve() == releases.project(Release.PREVIOUS) != PROJECT
    releases.change_over("api-1")
    assert link.resolve() == PROJECT


def test_a_release_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no files of the release v0\\.0-unknown"):
        Releases(tmp_path, "v0.0-unknown", Release.CURRENT)


@pytest.mark.kills
@pytest.mark.timeout(MOST_SECONDS + 60)
@pytest.mark.parametrize("option", ["--upgrade-from", "--downgrade-to"])
def test_two_releases_side_by_side_lose_double_and_leave_nothing(option: str, tmp_path: Path) -> None:
    options = (option, PREVIOUS_RELEASE, "--no-faults", "--brokers=1", f"--duration={SECONDS}")
    records = run_chaos(tmp_path, 1, *options)
    begun = [record for record in records if isinstance(record, FaultBegan)]
    assert [fault.fault for fault in begun] == [FaultKind.CHANGE_RELEASE] * 2
    assert [record.problem for record in records if isinstance(record, FaultEnded)] == [None, None]
