"""Several operators who act at the very same time: all wait for one lock, and are let go together."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.monitor.world import MonitorWorld
from tests.person import Person
from tests.postgres_looks import waiting_for_a_lock
from tests.waiting import eventually


def act_at_once(
    world: MonitorWorld, rows: str, people: Sequence[Person], act: Callable[[Person], object]
) -> None:
    """`rows` are locked, by a statement of SQL, until everybody has come that far."""
    with ThreadPoolExecutor(len(people)) as pool:
        with world.database.transaction() as connection:
            connection.execute(f"{rows} for update".encode())
            acting = [pool.submit(act, person) for person in people]
            eventually(lambda: waiting_for_a_lock(world.database) == len(people))
        for one in acting:
            one.result()
