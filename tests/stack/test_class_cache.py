"""Java's cache of Kafka's classes: made once, used from then on, and done without where it cannot be made."""

from pathlib import Path

import pytest

from stack.class_cache import ensure_class_cache
from stack.jars import ensure_jars
from stack.java import class_cache, java_command
from stack.options import cache_directory


@pytest.mark.stack
def test_it_is_made_once_and_used(tmp_path: Path) -> None:
    jars = []
    for jar in ensure_jars(cache_directory()):
        jars.append(tmp_path / jar.name)
        jars[-1].symlink_to(jar)
    assert not any("AOTCache" in word for word in java_command(jars, tmp_path, "kafka.Kafka"))
    ensure_class_cache(jars)
    made = class_cache(jars)
    assert made.stat().st_size > 1_000_000
    assert f"-XX:AOTCache={made}" in java_command(jars, tmp_path, "kafka.Kafka")
    before = made.stat().st_mtime_ns
    ensure_class_cache(jars)
    assert made.stat().st_mtime_ns == before


def test_where_it_cannot_be_made_there_is_none(tmp_path: Path) -> None:
    """Whoever starts Kafka finds out what is wrong, with a better message."""
    jars = [tmp_path / "is-not-there.jar"]
    ensure_class_cache(jars)
    assert not class_cache(jars).exists()
    assert list(tmp_path.iterdir()) == []
    ensure_class_cache([tmp_path / "no-such-directory" / "kafka.jar"])
