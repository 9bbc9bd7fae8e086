"""Kafka's jars in the per-user cache: those that are missing or damaged are fetched, checked and moved in."""

import errno
import hashlib
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from stack.errors import StackError
from stack.jar_progress import show_progress
from stack.lock_file import LockedJar, read_lock
from stack.maven import fetch_jar

Fetch = Callable[[str, Path], Path]
PARALLEL_FETCHES = 6
_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO})


def is_intact(path: Path, jar: LockedJar) -> bool:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    return len(content) == jar.size and hashlib.sha256(content).hexdigest() == jar.sha256


def ensure_jars(cache: Path, *, jars: list[LockedJar] | None = None, fetch: Fetch = fetch_jar) -> list[Path]:
    """The paths of all locked jars, each present in `cache` and checked against its checksum."""
    wanted = read_lock() if jars is None else jars
    directory = cache / "jars"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(
            f"Kafka's jars cannot be kept in {directory}: {error.strerror}.",
            "Make that directory writable, or name another one with MIZAN_CACHE_DIR=/some/directory.",
        ) from error
    missing = [jar for jar in wanted if not is_intact(directory / jar.file_name, jar)]
    if missing:
        _fetch_all(missing, directory, fetch)
    return [directory / jar.file_name for jar in wanted]


def _fetch_all(missing: list[LockedJar], directory: Path, fetch: Fetch) -> None:
    # A private directory on the same file system, so that a jar appears in the cache whole or not at all,
    # also when two checkouts start for the first time at once.
    with (
        tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as name,
        show_progress(missing) as arrived,
        ThreadPoolExecutor(PARALLEL_FETCHES) as pool,
    ):
        tasks = {pool.submit(_fetch_one, jar, Path(name), directory, fetch): jar for jar in missing}
        try:
            for task in as_completed(tasks):
                task.result()
                arrived(tasks[task])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _fetch_one(jar: LockedJar, private: Path, directory: Path, fetch: Fetch) -> None:
    for last_try in (False, False, True):
        # A place of its own for each try: jgo takes any file it finds there for the whole jar.
        place = Path(tempfile.mkdtemp(dir=private))
        try:
            path = fetch(jar.coordinate, place)
        except (OSError, RuntimeError) as error:
            if last_try:
                raise _not_downloaded(jar, directory, error) from error
            continue
        if is_intact(path, jar):
            path.replace(directory / jar.file_name)
            return
    raise StackError(
        f"{jar.coordinate} was downloaded, but is not the file that stack/kafka_jars.lock names.",
        "Start again. If it stays so, something between here and the registry alters downloads.",
    )


def _not_downloaded(jar: LockedJar, directory: Path, error: Exception) -> StackError:
    if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
        return StackError(
            f"{jar.coordinate} could not be written to {directory}: {error.strerror}.",
            "Kafka needs 45 MB there. Make room, or name another directory with MIZAN_CACHE_DIR=/some/directory.",
        )
    return StackError(
        f"{jar.coordinate} could not be downloaded ({type(error).__name__}).",
        "Only the first start needs the network, to fetch Kafka (45 MB). Check the connection and the "
        "proxy settings (HTTPS_PROXY) and start again: what was fetched already is kept. Without any "
        f"network, copy a filled {directory} from another machine.",
    )
