"""Shows the progress of a test run: a bar, the time left, and each failure at once.

A failure comes with the command that runs it alone, and with what the processes it used have logged meanwhile.
"""

import shlex
import time
from collections import Counter
from collections.abc import Generator, Iterable
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter

from tests import logs

SUMMARY_LINE = "summary line"
"""The name of a property (fixture record_property) that is printed at the end of the run."""
_DURATIONS = "mizan/durations"
_EVERY_S = 30.0
"""How often to print the progress if there is no terminal."""
_Status = tuple[str, str, Any]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    logs.start_test()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections += [(f"The end of {name}", text) for name, text in logs.lines_of_test()]
    return report


class Progress:
    """The progress bar. The time left is estimated from the durations of the last run, if they are known."""

    def __init__(self, config: pytest.Config, reporter: TerminalReporter) -> None:
        self._config = config
        self._reporter = reporter
        self._cache = getattr(config, "cache", None)  # missing with -p no:cacheprovider
        self._known: dict[str, float] = self._cache.get(_DURATIONS, {}) if self._cache else {}
        self._durations: dict[str, float] = {}
        self._expected: dict[str, float] = {}
        self._done: set[str] = set()
        self._failed = 0
        self._skipped: Counter[str] = Counter()
        self._summary_lines: list[str] = []
        self._began = self._shown = time.monotonic()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect(item.nodeid for item in session.items)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._expected:
            self._expect(ids)

    def _expect(self, ids: Iterable[str]) -> None:
        every = list(ids)
        known = [self._known[one] for one in every if one in self._known]
        usual = sum(known) / len(known) if known else 1.0
        self._expected = {one: self._known.get(one, usual) for one in every}
        self._began = self._shown = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, _Status, _Status]:
        """Print no dot for a passed test: the bar shows it."""
        category, letter, word = yield
        return category, "" if letter == "." else letter, word

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed += 1
            self._show_failure(report)
        if report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1
        if report.when == "call":
            self._summary_lines += [
                str(text) for name, text in report.user_properties if name == SUMMARY_LINE
            ]
        if not isinstance(report, pytest.SubtestReport):
            self._durations[report.nodeid] = self._durations.get(report.nodeid, 0.0) + report.duration
        if report.when == "teardown":
            self._done.add(report.nodeid)
            self._show_progress()

    def _show_failure(self, report: pytest.TestReport) -> None:
        self._reporter.write_line("")
        self._reporter.section(f"{report.when} of {report.nodeid}", "_", red=True, bold=True)
        report.toterminal(self._config.get_terminal_writer())
        for title, content in report.sections:
            self._reporter.section(title, "-")
            self._reporter.write_line(content)
        self._reporter.write_line(
            f"To run it alone: .venv/bin/pytest {shlex.quote(report.nodeid)}", bold=True
        )

    def _show_progress(self) -> None:
        now = time.monotonic()
        if now - self._shown < (0.2 if self._reporter.isatty else _EVERY_S):
            return
        self._shown = now
        line = self._line(now - self._began)
        if self._reporter.isatty:
            self._reporter.rewrite(line, erase=True)
        else:
            self._reporter.write_line(line)

    def _line(self, elapsed: float) -> str:
        done = sum(self._expected.get(one, 0.0) for one in self._done)
        whole = sum(self._expected.values())
        share = done / whole if whole else 1.0
        left = elapsed * (1 - share) / share if share else 0.0
        bar = "█" * int(share * 30)
        failed = f", {self._failed} failed" if self._failed else ""
        return (
            f"{bar:░<30} {share:4.0%}  {len(self._done)} of {len(self._expected)} tests{failed}, "
            f"about {left // 60:.0f} min {left % 60:02.0f} s left"
        )

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self) -> None:
        """Print what tests recorded as summary lines, and one line for each reason to skip."""
        for text in self._summary_lines:
            self._reporter.write_line(text)
        for reason, count in self._skipped.items():
            self._reporter.write_line(f"Skipped ({count}): {reason}", yellow=True)

    def pytest_sessionfinish(self) -> None:
        if self._reporter.isatty:
            self._reporter.rewrite("", erase=True)
        if self._cache and self._durations:
            self._cache.set(_DURATIONS, {**self._known, **self._durations})


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if isinstance(reporter, TerminalReporter):  # not in a worker
        config.pluginmanager.register(Progress(config, reporter), "progress")
