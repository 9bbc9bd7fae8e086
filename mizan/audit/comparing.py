"""Our attempts beside the charges of the sandbox's ledger. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

import msgspec

from mizan.audit.checks import CHECKS, Finding
from shared.domain.attempts.states import CHARGED, IN_FLIGHT, AttemptState

_PAID = "paid"
_MADE_HERE = 7
"""The version of the uuids that are ours; whoever tries the sandbox by hand has others."""


class Charge(msgspec.Struct, frozen=True):
    """As the ledger tells it."""

    id: str
    attempt: UUID
    intent: UUID
    amount: int
    currency: str
    method: str
    status: str


@dataclass(frozen=True, slots=True)
class Attempt:
    id: UUID
    intent: UUID
    state: AttemptState
    method: str
    amount: int
    """Of its intent."""
    currency: str


Pair = tuple[UUID, Attempt | None, Sequence[Charge]]


def side_by_side(attempts: Iterable[Attempt], charges: Iterable[Charge]) -> Iterator[Pair]:
    """Both come in the order of the attempts' ids, and as they come they go: there may be millions."""
    grouped = groupby(charges, lambda charge: charge.attempt)
    of_charges: Iterator[tuple[UUID, list[Charge]]] = ((id_, list(group)) for id_, group in grouped)
    ours = iter(attempts)
    attempt, charged = next(ours, None), next(of_charges, None)
    while attempt is not None or charged is not None:
        if charged is None or (attempt is not None and attempt.id < charged[0]):
            assert attempt is not None
            yield attempt.id, attempt, ()
            attempt = next(ours, None)
        elif attempt is None or charged[0] < attempt.id:
            yield charged[0], None, charged[1]
            charged = next(of_charges, None)
        else:
            yield attempt.id, attempt, charged[1]
            attempt, charged = next(ours, None), next(of_charges, None)


def judge(pair: Pair) -> Finding | None:
    """What is wrong with it, if anything is."""
    id_, attempt, charges = pair
    paid = [charge for charge in charges if charge.status == _PAID]
    if len(paid) > 1:
        return _finding(
            "charges_once", id_, f"charges {', '.join(charge.id for charge in paid)} are all paid"
        )
    if attempt is not None:
        return _judge_known(attempt, paid, charges)
    if paid and id_.version == _MADE_HERE:
        return _finding("charges_known", id_, f"charge {paid[0].id}: {_as_told(paid[0])}")
    return None


def _judge_known(attempt: Attempt, paid: Sequence[Charge], charges: Sequence[Charge]) -> Finding | None:
    """While an attempt is under way nothing is wrong: somebody will ask."""
    is_paid = attempt.state in CHARGED
    stands = f"{attempt.state} on intent {attempt.intent}"
    if is_paid and not paid:
        said = charges[0].status if charges else "knows nothing of it"
        return _finding("payments_charged", attempt.id, f"{stands}; the sandbox: {said}")
    if paid and not is_paid and attempt.state not in IN_FLIGHT:
        return _finding("charges_paid", attempt.id, f"{stands}; charge {paid[0].id} is paid")
    if is_paid and _as_told(paid[0]) != _as_known(attempt):
        detail = f"charge {paid[0].id}: {_as_told(paid[0])}; here: {_as_known(attempt)}"
        return _finding("charges_fit", attempt.id, detail)
    return None


def _finding(check: str, id_: UUID, detail: str) -> Finding:
    return Finding(CHECKS[check], str(id_), detail)


def _as_told(charge: Charge) -> str:
    return f"{charge.amount} {charge.currency} by {charge.method} for intent {charge.intent}"


def _as_known(attempt: Attempt) -> str:
    return f"{attempt.amount} {attempt.currency} by {attempt.method} for intent {attempt.intent}"
