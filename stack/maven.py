"""The only room that talks to a Maven registry, through jgo: by coordinate, never by address."""

import logging
from pathlib import Path

from jgo.maven import MavenContext, PythonResolver

REQUEST_SECONDS = 60

# jgo warns where it cannot compare checksums; ours are compared with the lock file instead.
logging.getLogger("jgo").setLevel(logging.ERROR)


def _context(directory: Path) -> MavenContext:
    return MavenContext(resolver=PythonResolver(), repo_cache=directory, timeout=REQUEST_SECONDS)


def fetch_jar(coordinate: str, directory: Path) -> Path:
    """Download one jar below `directory` and return where it is. Nothing is checked here."""
    return _context(directory).create_dependency(coordinate).artifact.resolve()


def resolve_coordinates(root: str, directory: Path) -> list[str]:
    """The coordinates of `root` and of everything it needs at run time."""
    context = _context(directory)
    inputs, transitive = context.resolver.resolve([context.create_dependency(root)])
    return [
        f"{dependency.groupId}:{dependency.artifactId}:{dependency.version}"
        for dependency in [*inputs, *transitive]
        if dependency.type == "jar" and not dependency.classifier
    ]
