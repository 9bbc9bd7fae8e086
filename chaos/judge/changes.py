"""When the changes of an intent that merchants are told of can have happened at the earliest."""

from collections.abc import Iterator
from math import inf

from chaos.judge.receipts import CANCELED, SUCCEEDED
from chaos.judge.run import Intent, Run


def sure_changes(intent: Intent) -> Iterator[str]:
    """Yield the events of the changes that surely happened, because a client saw their result."""
    statuses = {sighting.seen.status for sighting in intent.sightings}
    if "canceled" in statuses:
        yield CANCELED
    if "succeeded" in statuses:
        yield SUCCEEDED


def earliest_change(run: Run, uuid: str, event: str) -> float:
    """Return a time of the machine before which this change surely had not happened; -inf if nothing is known."""
    intent = run.intents.get(uuid)
    if intent is None:
        return -inf
    before = {"requires_payment_method", "processing"} | ({"canceled"} if event == SUCCEEDED else set())
    unchanged = [sighting.began_at for sighting in intent.sightings if sighting.seen.status in before]
    if event == CANCELED:
        return max([run.clock.reached_at(intent.first.expires_at), *unchanged])
    clicks = [click.began_at for click in run.clicks.get(uuid, ())]
    first_payment = min(clicks + [late.began_at for late in run.late_settlements.get(uuid, ())], default=-inf)
    return max([first_payment, *unchanged])
