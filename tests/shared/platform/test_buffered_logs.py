"""The buffered log writer: each line is written once, whole, and soon."""

from concurrent.futures import ThreadPoolExecutor

from shared.platform.logs import BufferedLogWriter
from tests.waiting import eventually


def test_lines_are_written_without_a_call_to_flush() -> None:
    written: list[str] = []
    lines = BufferedLogWriter(written.append)
    lines.add("one")
    lines.add("two")
    eventually(lambda: "\n".join(written) == "one\ntwo")
    lines.add("three")
    eventually(lambda: "\n".join(written) == "one\ntwo\nthree")


def test_no_line_is_lost_or_duplicated_between_threads() -> None:
    """Eight threads write while lines are flushed."""
    written: list[str] = []
    lines = BufferedLogWriter(written.append)

    def write(thread: int) -> None:
        for number in range(2_000):
            lines.add(f"{thread}-{number}")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    lines.flush()
    lines_written = "\n".join(written).split("\n")
    assert len(lines_written) == 16_000
    assert set(lines_written) == {f"{thread}-{number}" for thread in range(8) for number in range(2_000)}
