"""Several operators act at the same moment: their requests all wait for one lock, which is then released."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient
from tests.postgres_statistics import count_lock_waits
from tests.waiting import eventually


def act_at_once(
    world: MonitorWorld, rows: str, people: Sequence[PageClient], act: Callable[[PageClient], object]
) -> None:
    """Run `act` for everybody at once. The SQL query `rows` locks rows until all requests wait for them."""
    with ThreadPoolExecutor(len(people)) as pool:
        with world.database.transaction() as connection:
            connection.execute(f"{rows} for update".encode())
            acting = [pool.submit(act, person) for person in people]
            eventually(lambda: count_lock_waits(world.database) == len(people))
        for one in acting:
            one.result()
