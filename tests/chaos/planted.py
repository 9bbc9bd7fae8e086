"""Plants damage into the sample: small functions that take the records of a run and return changed ones."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chaos.history import (
    CreateAnswered,
    DeliveryShown,
    Record,
    RetrieveAnswered,
    TryShown,
    WebhookReceived,
)
from chaos.judge.settling import AUDIT_AGREES
from chaos.judge.verdict import RULES, judge
from tests.chaos.run_builder import START, RunBuilder, sign
from tests.chaos.sample_run import build_sample

Kind = TypeVar("Kind", bound=Record)
Damage = Callable[[list[Record]], list[Record]]

_AUDITED = {rule.name for rule in RULES if rule.audited}


@dataclass(frozen=True)
class Planted:
    name: str
    damage: Damage
    rules: frozenset[str]
    """The rules that must name it."""


def planted(name: str, damage: Damage, *rules: str) -> Planted:
    return Planted(name, damage, frozenset(rules))


def names(cases: Iterable[Planted]) -> list[str]:
    return [case.name for case in cases]


def assert_named(case: Planted) -> None:
    """Check that these rules name the damage, and no others do; the audit of the sample has found nothing."""
    verdict = judge(case.damage(build_sample()))
    found = {finding.rule for finding in verdict.findings}
    disagreement = {AUDIT_AGREES} if case.rules & _AUDITED else set()
    assert found == case.rules | disagreement, verdict.findings


def find_record(records: Sequence[Record], kind: type[Kind], **fields: Any) -> Kind:
    """Return the first record of this kind whose fields have these values."""
    return next(
        record
        for record in records
        if isinstance(record, kind) and all(getattr(record, name) == value for name, value in fields.items())
    )


def replaced(records: Sequence[Record], old: Record, *new: Record) -> list[Record]:
    """Return the records with `new` at the place of `old`."""
    place = next(index for index, record in enumerate(records) if record is old)
    return [*records[:place], *new, *records[place + 1 :]]


def change(kind: type[Record], new: dict[str, Any], **fields: Any) -> Damage:
    """Change the first record with these fields."""

    def damage(records: list[Record]) -> list[Record]:
        old = find_record(records, kind, **fields)
        return replaced(records, old, replace(old, **new))

    return damage


def change_intent(
    kind: type[CreateAnswered | RetrieveAnswered], new: dict[str, Any], **fields: Any
) -> Damage:
    """Change the intent in the first answer with these fields."""

    def damage(records: list[Record]) -> list[Record]:
        old = find_record(records, kind, **fields)
        assert old.intent is not None
        return replaced(records, old, replace(old, intent=replace(old.intent, **new)))

    return damage


def drop(kind: type[Record], **fields: Any) -> Damage:
    """Remove the first record with these fields."""
    return lambda records: replaced(records, find_record(records, kind, **fields))


def add(*added: Record) -> Damage:
    return lambda records: [*records, *added]


def add_run(fill: Callable[[RunBuilder], object]) -> Damage:
    """Add what `fill` adds to a run."""

    def damage(records: list[Record]) -> list[Record]:
        run = RunBuilder()
        run.attempts = 100
        fill(run)
        return [*records, *run.records]

    return damage


def both(*damages: Damage) -> Damage:
    """Plant all of these, one after the other."""

    def damage(records: list[Record]) -> list[Record]:
        for one in damages:
            records = one(records)
        return records

    return damage


def retrieve(application: str, uuid: str, at: float, status: str, created: float) -> Damage:
    """Add a retrieve that shows this status, as of three seconds after the creation."""
    return add_run(
        lambda run: run.retrieve(application, uuid, at, run.seen(uuid, status, created, created + 3))
    )


def final_status(uuid: str, status: str, created: float, updated: float) -> Damage:
    seen = RunBuilder().seen(uuid, status, created, updated)
    return change(RetrieveAnswered, {"intent": seen}, uuid=uuid, after_settling=True)


def request_of(records: Sequence[Record], delivery: str, number: int = 0) -> WebhookReceived:
    """Return a request of this delivery, the first one if no number is given."""
    requests = [one for one in records if isinstance(one, WebhookReceived) and f'"{delivery}"' in one.body]
    return requests[number]


def change_request(delivery: str, number: int = 0, **new: Any) -> Damage:
    """Change a request of this delivery."""

    def damage(records: list[Record]) -> list[Record]:
        old = request_of(records, delivery, number)
        return replaced(records, old, replace(old, **new))

    return damage


def sign_with(secret: str, delivery: str, number: int = 0, body: str | None = None) -> Damage:
    """Sign a request of this delivery with another secret, or another body of it with this one."""

    def damage(records: list[Record]) -> list[Record]:
        old = request_of(records, delivery, number)
        text = old.body if body is None else body
        return replaced(records, old, replace(old, body=text, signature=sign(text, secret)))

    return damage


def repeat_request(delivery: str, at: float, **new: Any) -> Damage:
    """Add a copy of the first request of this delivery."""
    return lambda records: [*records, replace(request_of(records, delivery), at=START + at, **new)]


def never_sent(delivery: str) -> Damage:
    """Remove all requests of this delivery."""
    return lambda records: [
        one for one in records if not (isinstance(one, WebhookReceived) and f'"{delivery}"' in one.body)
    ]


def never_listed(delivery: str) -> Damage:
    """Remove this delivery, with its tries, from what the dashboard lists."""
    return lambda records: [
        one for one in records if not (isinstance(one, DeliveryShown | TryShown) and one.delivery == delivery)
    ]
