"""Rules about the states of intents (§3): how they may follow each other, and when an intent expires."""

from collections.abc import Iterator
from math import inf

from chaos.judge.receipts import CANCELED, SUCCEEDED, Receipt
from chaos.judge.rules import Breach, Damage, RuleTable, clock_time
from chaos.judge.run import Intent, Run

TABLE = RuleTable()

STATUSES = frozenset({"requires_payment_method", "processing", "succeeded", "canceled"})
_CLOSED = ("canceled", "succeeded")
EXPIRY_SECONDS = 60.0
"""How long after its expiry an intent may still be open at the end."""
_UPDATE_SECONDS = 1.0
"""An expiry has the time when its statement began, which may be a little before another change."""
_ROUNDING = 0.001


@TABLE.add(Damage.WRONG)
def status_is_of_the_spec(run: Run) -> Iterator[Breach]:
    """The status of an intent is one of the four."""
    for intent in run.intents.values():
        for sighting in intent.sightings:
            if sighting.seen.status not in STATUSES:
                yield intent.uuid, f"its status was {sighting.seen.status} at {clock_time(sighting.at)}"


@TABLE.add(Damage.LOST)
def status_moves_as_allowed(run: Run) -> Iterator[Breach]:
    """Succeeded is final, and a canceled intent can only succeed."""
    for intent in run.intents.values():
        paid_pages = [click.at for click in run.clicks.get(intent.uuid, ()) if click.page == "paid"]
        succeeded = min([*_seen_at(intent, "succeeded"), *paid_pages], default=inf)
        canceled = min(_seen_at(intent, "canceled"), default=inf)
        yield from _older_sightings(intent, succeeded, canceled, "it was shown as {} at {}")


@TABLE.add(Damage.LOST)
def retrieval_after_receipt_is_not_older(run: Run) -> Iterator[Breach]:
    """What is retrieved after a webhook was received is not older than the webhook."""
    first: dict[tuple[str, str], float] = {}
    for receipt in run.receipts:
        first.setdefault((receipt.uuid, receipt.event), receipt.at)
    for intent in run.intents.values():
        succeeded = first.get((intent.uuid, SUCCEEDED), inf)
        canceled = first.get((intent.uuid, CANCELED), inf)
        yield from _older_sightings(intent, succeeded, canceled, "its webhook about {} came at {}")


def _seen_at(intent: Intent, status: str) -> list[float]:
    return [sighting.at for sighting in intent.sightings if sighting.seen.status == status]


def _older_sightings(intent: Intent, succeeded: float, canceled: float, newer: str) -> Iterator[Breach]:
    """Yield the first answer to a request that was sent after a newer status was known."""
    for sighting in intent.sightings:
        status = sighting.seen.status
        if status == "succeeded" or (sighting.began_at < succeeded and status == "canceled"):
            continue
        if sighting.began_at < min(succeeded, canceled):
            continue
        name, at = ("succeeded", succeeded) if sighting.began_at >= succeeded else ("canceled", canceled)
        asked = clock_time(sighting.began_at)
        yield (
            intent.uuid,
            f"{newer.format(name, clock_time(at))}, but as {status} to a request sent at {asked}",
        )
        return


@TABLE.add(Damage.LOST)
def update_time_never_goes_back(run: Run) -> Iterator[Breach]:
    """The time of an intent's last update never goes back from one answer to a later request."""
    for intent in run.intents.values():
        newest = -inf
        answered = iter(intent.sightings)
        waiting = next(answered, None)
        for sighting in sorted(intent.sightings, key=lambda one: one.began_at):
            while waiting is not None and waiting.at <= sighting.began_at:
                newest = max(newest, waiting.seen.updated_at)
                waiting = next(answered, None)
            if sighting.seen.updated_at < newest - _UPDATE_SECONDS:
                times = f"{clock_time(newest)} and then {clock_time(sighting.seen.updated_at)}"
                asked = clock_time(sighting.began_at)
                yield intent.uuid, f"its last update was shown as {times}, to a request sent at {asked}"
                break


@TABLE.add(Damage.STUCK, needs_end=True, audited=True)
def nothing_is_processing(run: Run) -> Iterator[Breach]:
    """After settling, no intent is processing."""
    for intent in run.intents.values():
        if intent.final is not None and intent.final.status == "processing":
            yield intent.uuid, f"it is still processing, since {clock_time(intent.final.updated_at)}"


@TABLE.add(Damage.STUCK, needs_end=True, audited=True)
def expired_is_canceled(run: Run) -> Iterator[Breach]:
    """After settling, every unpaid intent whose time has passed is canceled."""
    for intent in run.intents.values():
        if intent.final is None or intent.final.status != "requires_payment_method":
            continue
        if intent.final.expires_at <= run.clock.lowest(intent.final_began_at - EXPIRY_SECONDS):
            asked = clock_time(run.clock.lowest(intent.final_began_at))
            expired = clock_time(intent.final.expires_at)
            yield (
                intent.uuid,
                f"it expired at {expired}, and was not canceled at {asked} of the product's clock",
            )


@TABLE.add(Damage.WRONG)
def never_canceled_early(run: Run) -> Iterator[Breach]:
    """No intent is canceled, or called expired, before its time has come on the product's clock."""
    for intent in run.intents.values():
        expires_at = intent.first.expires_at
        for sighting in intent.sightings:
            seen = sighting.seen
            if seen.status == "canceled" and min(run.clock.highest(sighting.at), seen.updated_at) < (
                expires_at - _ROUNDING
            ):
                changed = f"canceled at {clock_time(seen.updated_at)}, seen at {clock_time(sighting.at)}"
                yield intent.uuid, f"{changed}, but it expires at {clock_time(expires_at)}"
                break
        for click in run.clicks.get(intent.uuid, ()):
            if click.page == "expired" and run.clock.highest(click.at) < expires_at - _ROUNDING:
                at = clock_time(run.clock.highest(click.at))
                yield (
                    intent.uuid,
                    f"the checkout said expired at {at}, but it expires {clock_time(expires_at)}",
                )
    for receipt in run.receipts:
        yield from _early_webhook(run, receipt)


def _early_webhook(run: Run, receipt: Receipt) -> Iterator[Breach]:
    intent = run.intents.get(receipt.uuid)
    if receipt.event != CANCELED or intent is None:
        return
    if run.clock.highest(receipt.at) < intent.first.expires_at - _ROUNDING:
        at, expires = clock_time(run.clock.highest(receipt.at)), clock_time(intent.first.expires_at)
        yield intent.uuid, f"its webhook came at {at} of the product's clock, but it expires at {expires}"
