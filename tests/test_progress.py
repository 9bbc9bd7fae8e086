"""The output of a test run."""

import pytest

SOME_TESTS = """
    import pytest
    from tests.logs import attach_log

    def test_that_fails(tmp_path):
        log = tmp_path / "server.log"
        log.write_text("before the test used it\\n")
        attach_log(log)
        with log.open("a") as more:
            more.write("the server says no\\n2026-01-01 INFO  Kafka makes a partition\\n")
        assert log is None

    @pytest.mark.parametrize("number", range(3))
    def test_without_a_program(number):
        pytest.skip("Install it.")

    def test_that_passes():
        pass
"""


def test_failure_is_shown_at_once_and_skips_are_summarized_in_one_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_some=SOME_TESTS)
    result = pytester.runpytest_inprocess("-p", "tests.progress", "-o", "console_output_style=classic")
    result.assert_outcomes(failed=1, skipped=3, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*call of test_some.py::test_that_fails*",
            "*assert *server.log* is None",
            "*The end of server.log*",
            "the server says no",
            "To run it alone: .venv/bin/pytest test_some.py::test_that_fails",
            "*= FAILURES =*",
            "Skipped (3): Install it.",
        ]
    )
    result.stdout.no_fnmatch_line("before the test used it")
    result.stdout.no_fnmatch_line("*INFO  Kafka makes a partition")
