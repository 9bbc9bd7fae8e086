"""`python -m stack.lock_jars`: resolve Kafka's jars afresh and write the lock file."""

import hashlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stack.lock_file import LOCK_FILE, LockedJar, write_lock
from stack.maven import fetch_jar, resolve_coordinates

KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"
# Kafka 4 logs through slf4j 1.7 and brings log4j-core, but nothing that binds the one to the other. The
# binding is not resolved together with Kafka: jgo would let log4j's managed versions override Kafka's own.
LOGGING_BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"


def lock(coordinate: str, directory: Path) -> LockedJar:
    content = fetch_jar(coordinate, directory).read_bytes()
    return LockedJar(coordinate, hashlib.sha256(content).hexdigest(), len(content))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mizan-lock-") as name, ThreadPoolExecutor(8) as pool:
        directory = Path(name)
        coordinates = [*resolve_coordinates(KAFKA, directory), LOGGING_BINDING]
        jars = list(pool.map(lambda coordinate: lock(coordinate, directory), coordinates))
    write_lock(jars)
    print(f"{len(jars)} jars, {sum(jar.size for jar in jars) / 1e6:.0f} MB, written to {LOCK_FILE}")


if __name__ == "__main__":
    main()
