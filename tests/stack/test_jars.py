"""Kafka's jars: the cache contains only complete ones, and the download shows its progress."""

import errno
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from stack.errors import StackError
from stack.jars import LockedJar, ensure_jars, read_lock, write_lock
from stack.output import ProgressLines

EXAMPLE_JARS = [LockedJar(f"org.example:jar{number}:1.0", "0" * 64, 1_000_000) for number in range(40)]


def test_download_progress_is_printed_at_each_quarter_and_every_ten_seconds() -> None:
    """Not for each jar, and on a slow connection not too rarely."""
    now = [0.0]
    lines: list[str] = []
    progress = ProgressLines(len(EXAMPLE_JARS), 40_000_000, clock=lambda: now[0], write=lines.append)
    for number, jar in enumerate(EXAMPLE_JARS):
        now[0] += 11.0 if number == 2 else 0.1
        progress.downloaded(jar.size)
    assert lines == [
        "Downloading Kafka, 40 jars, 40 MB (once per user)",
        "  3 of 40 jars, 3 MB",
        "  13 of 40 jars, 13 MB",
        "  23 of 40 jars, 23 MB",
        "  33 of 40 jars, 33 MB",
        "  40 of 40 jars, 40 MB",
    ]


def test_full_disk_is_not_reported_as_a_network_problem(tmp_path: Path) -> None:
    def full_disk(_coordinate: str, _directory: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StackError) as caught:
        ensure_jars(tmp_path, jars=EXAMPLE_JARS[:1], fetch=full_disk)
    assert "No space left on device" in caught.value.problem
    assert "Free some space" in caught.value.remedy


CONTENT = {"org.example:one:1.0": b"one" * 1000, "org.example:two:2.0": b"two" * 1000}
JARS = [
    LockedJar(coordinate, hashlib.sha256(content).hexdigest(), len(content))
    for coordinate, content in CONTENT.items()
]


class Registry:
    """A stand-in for the network that records requests."""

    def __init__(self, alter: Callable[[bytes], bytes] = lambda content: content) -> None:
        self.asked: list[str] = []
        self._alter = alter

    def fetch(self, coordinate: str, directory: Path) -> Path:
        self.asked.append(coordinate)
        path = directory / "download.jar"
        assert not path.exists(), "a repeated download must not find what an earlier one left"
        path.write_bytes(self._alter(CONTENT[coordinate]))
        return path


def test_missing_jars_are_fetched_once(tmp_path: Path) -> None:
    """The first start downloads every jar, the second none."""
    registry = Registry()
    paths = ensure_jars(tmp_path, jars=JARS, fetch=registry.fetch)
    assert [path.read_bytes() for path in paths] == list(CONTENT.values())
    ensure_jars(tmp_path, jars=JARS, fetch=registry.fetch)
    assert sorted(registry.asked) == sorted(CONTENT)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[:100], id="half-downloaded"),
        pytest.param(lambda content: b"x" + content[1:], id="one byte changed, size kept"),
        pytest.param(lambda _: b"", id="empty"),
    ],
)
def test_damaged_jar_is_replaced(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Only a jar that does not match the lock file is downloaded again."""
    registry = Registry()
    first, second = ensure_jars(tmp_path, jars=JARS, fetch=registry.fetch)
    first.write_bytes(damage(first.read_bytes()))
    registry.asked.clear()
    ensure_jars(tmp_path, jars=JARS, fetch=registry.fetch)
    assert registry.asked == ["org.example:one:1.0"]
    assert [first.read_bytes(), second.read_bytes()] == list(CONTENT.values())


def test_altered_download_never_enters_the_cache(tmp_path: Path) -> None:
    """A download that does not match its checksum is refused and removed."""
    with pytest.raises(StackError, match=r"does not match stack/kafka_jars\.lock"):
        ensure_jars(tmp_path, jars=JARS, fetch=Registry(lambda content: content[:-1]).fetch)
    assert list((tmp_path / "jars").iterdir()) == []


def test_broken_download_is_retried(tmp_path: Path) -> None:
    """A connection that breaks once does not stop the start."""
    broken = iter([True, False, False])
    registry = Registry(lambda content: content[:10] if next(broken) else content)
    paths = ensure_jars(tmp_path, jars=JARS[:1], fetch=registry.fetch)
    assert paths[0].read_bytes() == CONTENT["org.example:one:1.0"]


def test_download_error_without_network_says_what_to_do(tmp_path: Path) -> None:
    """The error names the proxy setting and the cache directory."""

    def no_network(_coordinate: str, _directory: Path) -> Path:
        raise ConnectionError("name resolution failed")

    with pytest.raises(StackError) as caught:
        ensure_jars(tmp_path, jars=JARS, fetch=no_network)
    assert "could not be downloaded" in caught.value.problem
    assert "HTTPS_PROXY" in caught.value.remedy
    assert str(tmp_path) in caught.value.remedy


def test_two_concurrent_first_starts_share_the_jar_cache(tmp_path: Path) -> None:
    together = Barrier(2)

    def meet(content: bytes) -> bytes:
        together.wait(30)
        return content

    with ThreadPoolExecutor(2) as pool:
        starts = [
            pool.submit(ensure_jars, tmp_path, jars=JARS[:1], fetch=Registry(meet).fetch) for _ in range(2)
        ]
        paths = [start.result()[0] for start in starts]
    assert paths[0] == paths[1]
    assert paths[0].read_bytes() == CONTENT["org.example:one:1.0"]


def test_error_of_an_unwritable_cache_names_its_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="MIZAN_CACHE_DIR"):
        ensure_jars(tmp_path / "file", jars=JARS, fetch=Registry().fetch)


def test_lock_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_lock(JARS, tmp_path / "lock")
    assert read_lock(tmp_path / "lock") == JARS


def test_repository_locks_one_kafka_version() -> None:
    """A resolver once mixed in an old client library."""
    versions = {
        jar.coordinate.rpartition(":")[2]
        for jar in read_lock()
        if jar.coordinate.startswith("org.apache.kafka:")
    }
    assert versions == {"4.3.1"}
