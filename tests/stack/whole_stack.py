"""The whole stack with the real services, as `make run` starts it, on the engines of the tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stack.running_stack import RunningStack


@contextmanager
def whole_stack(
    directory: Path, database_url: str, kafka_servers: str, topic_prefix: str, **environment: str
) -> Iterator[RunningStack]:
    """Ready, and ended afterwards, whatever happened meanwhile."""
    running = RunningStack(
        directory,
        module="stack",
        port_base=0,
        DATABASE_URL=database_url,
        KAFKA_BOOTSTRAP_SERVERS=kafka_servers,
        KAFKA_TOPIC_PREFIX=topic_prefix,
        **environment,
    )
    try:
        running.wait_ready(within=150)
        yield running
    finally:
        running.end()
