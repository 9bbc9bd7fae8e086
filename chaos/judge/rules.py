"""What a rule is: a function that finds where a history breaks one sentence of the spec."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from chaos.judge.run import Run


class Damage(StrEnum):
    """What a finding of a rule is about."""

    LOST = "lost"
    DOUBLED = "doubled"
    STUCK = "stuck"
    WRONG = "wrong"


Breach = tuple[str, str]
"""The subject (a uuid, delivery or reference), and one sentence about it with the times."""
FindBreaches = Callable[[Run], Iterator[Breach]]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    statement: str
    damage: Damage
    find: FindBreaches
    needs_end: bool
    """Whether it can only be judged after the system has settled."""
    audited: bool
    """Whether `mizan audit` must find the same, because the stores show it."""


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    subject: str
    sentence: str


class RuleTable:
    """The rules of a module, in order. The docstring of a rule's function is its statement."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def add(
        self, damage: Damage, *, needs_end: bool = False, audited: bool = False
    ) -> Callable[[FindBreaches], FindBreaches]:
        def register(function: FindBreaches) -> FindBreaches:
            name = function.__name__.replace("_", "-")
            self.rules.append(Rule(name, function.__doc__ or "", damage, function, needs_end, audited))
            return function

        return register


def clock_time(at: float) -> str:
    """Return a time for a sentence, to the millisecond."""
    return datetime.fromtimestamp(at, UTC).strftime("%d %H:%M:%S.%f")[:-3]
