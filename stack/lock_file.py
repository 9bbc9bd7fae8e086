"""The list of Kafka's jars that belong to this checkout: coordinate, SHA-256 and size of each."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LOCK_FILE = Path(__file__).with_name("kafka_jars.lock")
HEADER = "# Written by `python -m stack.lock_jars`: group:artifact:version  sha256  size"


@dataclass(frozen=True)
class LockedJar:
    """One jar, as the repository knows it."""

    coordinate: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


def read_lock(path: Path = LOCK_FILE) -> list[LockedJar]:
    jars = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            coordinate, sha256, size = line.split()
            jars.append(LockedJar(coordinate, sha256, int(size)))
    return jars


def write_lock(jars: Iterable[LockedJar], path: Path = LOCK_FILE) -> None:
    lines = [
        f"{jar.coordinate}  {jar.sha256}  {jar.size}" for jar in sorted(jars, key=lambda jar: jar.coordinate)
    ]
    path.write_text("\n".join([HEADER, *lines]) + "\n")
