"""Java's cache of Kafka's classes is written once and then used. Kafka works without it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.broker import class_cache_path, java_command
from stack.jars import ensure_jars
from stack.kafka import ensure_class_cache
from stack.options import cache_directory


@pytest.fixture
def jars(tmp_path: Path) -> Iterator[list[Path]]:
    """Kafka's jars in another directory, so that they have their own cache."""
    made = [tmp_path / jar.name for jar in ensure_jars(cache_directory())]
    yield made
    for file in (class_cache_path(made), class_cache_path(made).with_suffix(".lock")):
        file.unlink(missing_ok=True)


@pytest.mark.stack
def test_class_cache_is_written_once_and_used(jars: list[Path], tmp_path: Path) -> None:
    for jar, real in zip(jars, ensure_jars(cache_directory()), strict=True):
        jar.symlink_to(real)
    assert not any("AOTCache" in word for word in java_command(jars, tmp_path, "kafka.Kafka"))
    ensure_class_cache(jars)
    made = class_cache_path(jars)
    assert made.stat().st_size > 1_000_000
    assert f"-XX:AOTCache={made}" in java_command(jars, tmp_path, "kafka.Kafka")
    before = made.stat().st_mtime_ns
    ensure_class_cache(jars)
    assert made.stat().st_mtime_ns == before


def test_failure_to_write_the_class_cache_is_ignored(jars: list[Path]) -> None:
    """Starting Kafka shows a better message for the same problem."""
    ensure_class_cache(jars)
    assert not class_cache_path(jars).exists()
