"""Kafka's jars: the lock file with their checksums, and the per-user cache that they are downloaded to.

`python -m stack.jars` resolves the jars again and writes the lock file.
"""

import errno
import hashlib
import logging
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stack.errors import StackError
from stack.output import show_progress

if TYPE_CHECKING:
    from jgo.maven import MavenContext

REQUEST_SECONDS = 60
PARALLEL_FETCHES = 6

LOCK_FILE = Path(__file__).with_name("kafka_jars.lock")
HEADER = "# Written by `python -m stack.jars`: group:artifact:version  sha256  size"


@dataclass(frozen=True)
class LockedJar:
    """A jar of the lock file."""

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


def _context(directory: Path) -> "MavenContext":
    # Imported only by a first start: it takes as long as everything else that a start imports.
    from jgo.maven import MavenContext, PythonResolver  # noqa: PLC0415

    # jgo warns if it cannot compare checksums. We compare them with the lock file instead.
    logging.getLogger("jgo").setLevel(logging.ERROR)
    return MavenContext(resolver=PythonResolver(), repo_cache=directory, timeout=REQUEST_SECONDS)


def fetch_jar(coordinate: str, directory: Path) -> Path:
    """Download one jar below `directory` and return its path. The content is not checked."""
    return _context(directory).create_dependency(coordinate).artifact.resolve()


def resolve_coordinates(root: str, directory: Path) -> list[str]:
    """Return the coordinates of `root` and of everything it needs at run time."""
    context = _context(directory)
    inputs, transitive = context.resolver.resolve([context.create_dependency(root)])
    return [
        f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}"
        for dependency in [*inputs, *transitive]
        if dependency.type == "jar" and not dependency.classifier
    ]


KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"
# Kafka 4 logs through slf4j 1.7 and includes log4j-core, but nothing that connects the two. This binding is resolved
# separately from Kafka, because jgo would let log4j's managed versions override Kafka's own.
LOGGING_BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"


def lock_jar(coordinate: str, directory: Path) -> LockedJar:
    content = fetch_jar(coordinate, directory).read_bytes()
    return LockedJar(coordinate, hashlib.sha256(content).hexdigest(), len(content))


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mizan-lock-") as name, ThreadPoolExecutor(8) as pool:
        directory = Path(name)
        coordinates = [*resolve_coordinates(KAFKA, directory), LOGGING_BINDING]
        jars = list(pool.map(lambda coordinate: lock_jar(coordinate, directory), coordinates))
    write_lock(jars)
    print(f"{len(jars)} jars, {sum(jar.size for jar in jars) / 1e6:.0f} MB, written to {LOCK_FILE}")


if __name__ == "__main__":
    main()


Fetch = Callable[[str, Path], Path]
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO})


def is_intact(path: Path, jar: LockedJar) -> bool:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    return len(content) == jar.size and hashlib.sha256(content).hexdigest() == jar.sha256


def ensure_jars(cache: Path, *, jars: list[LockedJar] | None = None, fetch: Fetch = fetch_jar) -> list[Path]:
    """Return the paths of all locked jars in `cache`. Missing and damaged ones are downloaded and verified.

    Raises StackError if the cache is not writable, a download fails, or a checksum differs.
    """
    wanted = read_lock() if jars is None else jars
    directory = cache / "jars"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(
            f"Kafka's jars cannot be stored in {directory}: {error.strerror}.",
            "Make that directory writable, or name another one with MIZAN_CACHE_DIR=/some/directory.",
        ) from error
    missing = [jar for jar in wanted if not is_intact(directory / jar.file_name, jar)]
    if missing:
        _fetch_all(missing, directory, fetch)
    return [directory / jar.file_name for jar in wanted]


def _fetch_all(missing: list[LockedJar], directory: Path, fetch: Fetch) -> None:
    # A private directory on the same file system, so that a jar appears complete or not at all, even if two
    # checkouts start for the first time at once.
    with (
        tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as name,
        show_progress([jar.size for jar in missing]) as downloaded,
        ThreadPoolExecutor(PARALLEL_FETCHES) as pool,
    ):
        tasks = {pool.submit(_fetch_one, jar, Path(name), directory, fetch): jar for jar in missing}
        try:
            for task in as_completed(tasks):
                task.result()
                downloaded(tasks[task].size)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _fetch_one(jar: LockedJar, private: Path, directory: Path, fetch: Fetch) -> None:
    for last_try in (False, False, True):
        # A new directory for each try: jgo would take a partial file for the whole jar.
        try_directory = Path(tempfile.mkdtemp(dir=private))
        try:
            path = fetch(jar.coordinate, try_directory)
        except (OSError, RuntimeError) as error:
            if last_try:
                raise _download_error(jar, directory, error) from error
            continue
        if is_intact(path, jar):
            path.replace(directory / jar.file_name)
            return
    raise StackError(
        f"{jar.coordinate} was downloaded, but does not match stack/kafka_jars.lock.",
        "Start again. If it happens again, something between here and the registry changes downloads.",
    )


def _download_error(jar: LockedJar, directory: Path, error: Exception) -> StackError:
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return StackError(
            f"{jar.coordinate} could not be written to {directory}: {error.strerror}.",
            "Kafka needs 45 MB there. Free some space, or name another directory with MIZAN_CACHE_DIR=/some/directory.",
        )
    return StackError(
        f"{jar.coordinate} could not be downloaded ({type(error).__name__}).",
        "Only the first start needs the network, to download Kafka (45 MB). Check the connection and the "
        "proxy settings (HTTPS_PROXY) and start again: finished downloads are kept. Without a "
        f"network, copy {directory} from another machine.",
    )
