"""100,000 events for 50 applications, of which 5 are dead: the other 45 are served as if alone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time
from uuid import UUID

import pytest

from bench.figures import percentile
from bench.receiver import Receiver, receiver
from shared.platform.database.pool import Database
from shared.platform.settings import KafkaSettings, Settings
from tests.servers import ServiceProcess
from tests.waiting import eventually
from tests.webhooks.conftest import MakeMerchant

pytestmark = [pytest.mark.stack, pytest.mark.long]

LIVING, DEAD = 45, 5
EVENTS_EACH = 2_000
WARM_UP_EACH = 20
MAX_RATIO = 3.0
"""How many times as long the living may take beside the dead: generous, for a busy machine. 1.1 is usual."""
STALLED_S = 60.0

_FALL_DUE = """
insert into payment_intents (application_id, merchant_reference, reference, amount, currency, expires_at)
select (%(applications)s::uuid[])[1 + n %% cardinality(%(applications)s::uuid[])], %(wave)s || n, %(wave)s || n, 25000,
       'LYD', mizan_now() + interval '1 second'
from generate_series(1, %(count)s) as n
"""
_TRIES_OF_DEAD = """
select count(*) filter (where t.failure = 'timeout'), count(*)
from webhook_tries as t join webhook_deliveries as d on d.id = t.delivery_id
where d.application_id = any(%s)
"""
_DELIVERIES = """
select status, count(*) from webhook_deliveries where application_id = any(%s) group by status
"""


@dataclass(frozen=True, slots=True)
class Served:
    """How the living were served after all intents had become due at one moment."""

    seconds: float
    """Until the last event of the living was received."""
    p99_s: float
    """From an event to its receipt."""
    repeated: int


class Applications:
    """Applications whose endpoints respond at once, and dead ones, whose endpoints never respond."""

    def __init__(self, database: Database, make_merchant: MakeMerchant, endpoint: Receiver) -> None:
        self._database = database
        self._make_merchant = make_merchant
        self._endpoint = endpoint
        self.living = [self._make(is_silent=False) for _ in range(LIVING)]
        self.dead = [self._make(is_silent=True) for _ in range(DEAD)]
        self._served = 0

    def _make(self, *, is_silent: bool) -> UUID:
        merchant = self._make_merchant(None)
        merchant.set_url(self._endpoint.hook(str(merchant.id), merchant.secret, is_silent=is_silent))
        return merchant.id

    def serve(self, events_each: int, dead: Sequence[UUID] = ()) -> Served:
        """Let intents of the living and these dead expire at once, and wait until the living have got their events."""
        applications = [*self.living, *dead]
        wave = f"{self._served}-"
        with self._database.transaction() as connection:
            connection.execute("set local statement_timeout = '5min'")
            values = {"applications": applications, "wave": wave, "count": events_each * len(applications)}
            connection.execute(_FALL_DUE.encode(), values)
        began = time()
        expected = events_each * LIVING
        self._served += expected
        self._endpoint.wait_for(expected, STALLED_S)
        eventually(lambda: self.deliveries(self.living) == {"succeeded": self._served}, STALLED_S, every=1)
        receipts = self._endpoint.take()
        assert len(set(receipts.ids)) == expected
        p99_s = percentile(receipts.latencies_ms(), 0.99) / 1000
        return Served(max(receipts.at) - began, p99_s, len(receipts.ids) - expected)

    def deliveries(self, applications: Sequence[UUID]) -> dict[str, int]:
        """Return how many there are, by status."""
        return {str(status): number for status, number in self._rows(_DELIVERIES, applications)}

    def tries_of_dead(self) -> tuple[int, int]:
        """Return how many timed out, and how many there were."""
        ((timed_out, tried),) = self._rows(_TRIES_OF_DEAD, self.dead)
        return int(timed_out), tried

    def _rows(self, query: str, applications: Sequence[UUID]) -> list[tuple[int | str, int]]:
        with self._database.transaction() as connection:
            return connection.execute(query.encode(), (list(applications),)).fetchall()


@contextmanager
def _services(settings: Settings, kafka: KafkaSettings, root: Path) -> Iterator[None]:
    """Run the scheduler and the webhooks as processes, with the retry schedule of production."""
    environment = {
        "MIZAN_SECRET_KEYS": ",".join(settings.secret_keys),
        "WEBHOOK_ALLOW_PRIVATE": "true",
    }
    scheduler, webhooks = (
        ServiceProcess(module, root, settings.database, kafka, **environment)
        for module in ("services.scheduler", "services.webhooks")
    )
    with scheduler.running(), webhooks.running():
        eventually(lambda: scheduler.status() == webhooks.status() == 200)
        yield


@pytest.mark.timeout(600)
def test_the_living_are_served_as_if_there_were_no_dead(
    database: Database,
    webhook_settings: Settings,
    all_topics: KafkaSettings,
    make_merchant: MakeMerchant,
    repository_root: Path,
) -> None:
    """The same 45 applications get 90,000 events alone, and 90,000 beside 10,000 of 5 endpoints that hang."""
    with receiver() as endpoint:
        applications = Applications(database, make_merchant, endpoint)
        with _services(webhook_settings, all_topics, repository_root):
            applications.serve(WARM_UP_EACH)
            alone = applications.serve(EVENTS_EACH)
            beside = applications.serve(EVENTS_EACH, applications.dead)
            eventually(lambda: applications.tries_of_dead()[1])
        timed_out, tried = applications.tries_of_dead()
    print(_report(alone, beside), f"the dead were tried {tried} times, of which {timed_out} timed out")
    assert beside.seconds < MAX_RATIO * alone.seconds
    assert applications.deliveries(applications.dead) == {"pending": DEAD * EVENTS_EACH}
    assert timed_out == tried


def _report(alone: Served, beside: Served) -> str:
    count = LIVING * EVENTS_EACH
    runs = [
        f"{served.seconds:.1f} s {how} ({count / served.seconds:.0f}/s, p99 from the event {served.p99_s:.1f} s, "
        f"{served.repeated} repeated)"
        for how, served in (("alone", alone), (f"beside {DEAD * EVENTS_EACH:,} of {DEAD} dead ones", beside))
    ]
    return (
        f"dead endpoints: {count:,} events of {LIVING} applications were received in {' and in '.join(runs)}, "
        f"{beside.seconds / alone.seconds:.2f} times as long;"
    )
