"""Rules about money: what the bank charged, and what the product says of it."""

from collections import Counter
from collections.abc import Iterator

from chaos.history import ChargeAtBank
from chaos.judge.rules import Breach, Damage, RuleTable, clock_time
from chaos.judge.run import Run

TABLE = RuleTable()


def _paid(run: Run, uuid: str) -> list[ChargeAtBank]:
    return [charge for charge in run.charges.get(uuid, ()) if charge.status == "paid"]


def _counted(run: Run, uuid: str) -> list[ChargeAtBank]:
    """Return the paid charges of an intent that are not reported as duplicates."""
    duplicates = run.duplicates.get(uuid, ())
    return [charge for charge in _paid(run, uuid) if charge.attempt not in duplicates]


@TABLE.add(Damage.LOST, needs_end=True, audited=True)
def paid_charge_is_succeeded_intent(run: Run) -> Iterator[Breach]:
    """The intent of every paid charge at the bank is succeeded."""
    for uuid, intent in run.intents.items():
        paid = _paid(run, uuid)
        if paid and intent.final is not None and intent.final.status != "succeeded":
            charges = ", ".join(charge.charge for charge in paid)
            updated = clock_time(intent.final.updated_at)
            yield uuid, f"charge {charges} is paid, but the intent is {intent.final.status} since {updated}"


@TABLE.add(Damage.WRONG, needs_end=True, audited=True)
def succeeded_intent_is_paid(run: Run) -> Iterator[Breach]:
    """Every succeeded intent has a paid charge of its amount that is not a duplicate."""
    for uuid, intent in run.intents.items():
        if intent.final is None or intent.final.status != "succeeded":
            continue
        if not any(charge.amount == intent.final.amount for charge in _counted(run, uuid)):
            updated = clock_time(intent.final.updated_at)
            yield uuid, f"it succeeded at {updated}, but the bank has no paid charge of {intent.final.amount}"


@TABLE.add(Damage.DOUBLED, needs_end=True, audited=True)
def paid_once(run: Run) -> Iterator[Breach]:
    """An intent has at most one paid charge that is not reported as a duplicate."""
    for uuid in run.charges:
        counted = _counted(run, uuid)
        if len(counted) > 1:
            charges = ", ".join(charge.charge for charge in counted)
            yield (
                uuid,
                f"the paid charges {charges} were read at {clock_time(counted[0].at)}, none a duplicate",
            )


@TABLE.add(Damage.DOUBLED, needs_end=True)
def second_payment_has_a_reason(run: Run) -> Iterator[Breach]:
    """A customer pays twice only if a charge was settled late, or a fault was around while they paid."""
    for uuid in run.charges:
        paid = {charge.charge for charge in _paid(run, uuid)}
        late = {settlement.charge for settlement in run.late_settlements.get(uuid, ())}
        clicks = run.clicks.get(uuid, ())
        if len(paid) < 2 or paid & late or not clicks:
            continue
        begin, end = min(click.began_at for click in clicks), max(click.at for click in clicks)
        if not run.faults.is_around(begin, end):
            times = ", ".join(clock_time(click.began_at) for click in clicks)
            yield (
                uuid,
                f"the charges {', '.join(sorted(paid))} are paid, after clicks at {times} and no fault",
            )


@TABLE.add(Damage.DOUBLED, needs_end=True)
def one_click_one_charge(run: Run) -> Iterator[Breach]:
    """An intent has no more charges than its customer sent the payment form, with or without an answer."""
    for uuid, charges in run.charges.items():
        clicks = [click for click in run.clicks.get(uuid, ()) if click.click == "pay"]
        if len(charges) > len(clicks):
            times = ", ".join(clock_time(click.began_at) for click in clicks) or "never"
            yield (
                uuid,
                f"the form was sent {len(clicks)} times ({times}), but there are {len(charges)} charges",
            )


@TABLE.add(Damage.DOUBLED, needs_end=True, audited=True)
def one_attempt_one_charge(run: Run) -> Iterator[Breach]:
    """No attempt has two charges at the bank."""
    for uuid, charges in run.charges.items():
        for attempt, count in Counter(charge.attempt for charge in charges).items():
            if count > 1:
                yield uuid, f"attempt {attempt} has {count} charges, read at {clock_time(charges[0].at)}"


@TABLE.add(Damage.WRONG, needs_end=True)
def charge_fits_its_intent(run: Run) -> Iterator[Breach]:
    """Every charge at the bank has the amount of an intent that a client knows."""
    for uuid, charges in run.charges.items():
        intent = run.intents.get(uuid)
        for charge in charges:
            read = f"charge {charge.charge}, read at {clock_time(charge.at)},"
            if intent is None:
                yield uuid, f"{read} is of an intent that nobody created"
            elif charge.amount != intent.first.amount:
                yield uuid, f"{read} is of {charge.amount} instead of {intent.first.amount}"


@TABLE.add(Damage.WRONG, needs_end=True)
def duplicate_is_a_second_charge(run: Run) -> Iterator[Breach]:
    """What is reported as a duplicate is a paid charge of that intent."""
    for uuid, attempts in run.duplicates.items():
        for attempt in sorted(attempts - {charge.attempt for charge in _paid(run, uuid)}):
            yield uuid, f"attempt {attempt} is reported as a duplicate, but the bank has no paid charge of it"


@TABLE.add(Damage.WRONG, needs_end=True)
def no_charge_starts_after_expiry(run: Run) -> Iterator[Breach]:
    """Nothing is charged for a payment form that was sent after the intent had expired."""
    for uuid, charges in run.charges.items():
        intent = run.intents.get(uuid)
        if intent is None:
            continue
        expires_at = intent.first.expires_at
        clicks = [click for click in run.clicks.get(uuid, ()) if click.click == "pay"]
        late = [click for click in clicks if run.clock.lowest(click.began_at) > expires_at]
        if late and len(charges) > len(clicks) - len(late):
            sent = clock_time(run.clock.lowest(late[0].began_at))
            yield uuid, f"it expired at {clock_time(expires_at)}, and the form sent at {sent} made a charge"
