"""Java's cache of Kafka's classes is written once and then used. Kafka works without it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.broker import class_cache_path, java_command
from stack.jars import ensure_jars
from stack.kafka import ensure_class_cache
from stack.options import cache_directory


@pytest.fixture
def jars(tmp_path: Path) -> Iterator[list[Path]]:
    """Copies of Kafka's jars, so that they have their own cache."""
    made = [Path(shutil.copy2(jar, tmp_path)) for jar in ensure_jars(cache_directory())]
    yield made
    for file in (class_cache_path(made), class_cache_path(made).with_suffix(".lock")):
        file.unlink(missing_ok=True)


@pytest.mark.stack
def test_class_cache_is_written_once_and_used(jars: list[Path], tmp_path: Path) -> None:
    assert not any("AOTCache" in word for word in java_command(jars, tmp_path, "kafka.Kafka"))
    ensure_class_cache(jars)
    made = class_cache_path(jars)
    assert made.stat().st_size > 1_000_000
    assert f"-XX:AOTCache={made}" in java_command(jars, tmp_path, "kafka.Kafka")
    before = made.stat().st_mtime_ns
    ensure_class_cache(jars)
    assert made.stat().st_mtime_ns == before


def test_jars_that_were_downloaded_again_have_another_class_cache(jars: list[Path]) -> None:
    """Java would refuse the old one at every start."""
    before = class_cache_path(jars)
    os.utime(jars[0], (0, 0))
    assert class_cache_path(jars) != before


def test_failure_to_write_the_class_cache_is_ignored(jars: list[Path]) -> None:
    """Starting Kafka shows a better message for the same problem."""
    for jar in jars:
        jar.write_bytes(b"")
    ensure_class_cache(jars)
    assert not class_cache_path(jars).exists()
