"""Explores a model completely, breadth first, and reports the shortest way to a state that must not be."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S")
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


class ViolationError(Exception):
    """A state or a step of the model must not be. The text says which promise is broken."""


class Model(Protocol[S, A_co]):
    def initial(self) -> S:
        """Return the first state."""

    def successors(self, state: S) -> Iterable[tuple[A_co, S]]:
        """Yield every action that is possible in `state`, with the state after it. Raises ViolationError."""

    def check(self, state: S) -> None:
        """Raise ViolationError if this state must not be."""

    def key(self, state: S) -> Hashable:
        """Return what identifies the state. States with the same key have the same future."""

    def canonical(self, state: S) -> S:
        """Return the state that stands for all states with its key."""

    def describe(self, state: S) -> str:
        """Return the state as a line of text."""


@dataclass(frozen=True)
class Exploration:
    """A model that was explored completely, without a violation."""

    states: int
    steps: int
    """Actions taken in all these states."""
    depth: int
    """Most actions that are needed to reach a state."""

    def __str__(self) -> str:
        return f"{self.states:,} states, {self.steps:,} steps, up to {self.depth} actions deep"


class CounterexampleError(Exception):
    """A promise is broken. The text is the shortest sequence of actions that breaks it."""

    def __init__(self, problem: str, trace: Sequence[tuple[str, str]], states: int) -> None:
        self.problem = problem
        self.states = states
        lines = [f"{number:3}. {action}\n       {state}" for number, (action, state) in enumerate(trace)]
        super().__init__("\n".join([f"{problem} (after {states:,} states)", *lines]))


class TooManyStatesError(Exception):
    """The model has more states than expected: a bound is missing."""


@dataclass
class _Reached(Generic[S, A]):
    """How each state was reached first."""

    states: list[S]
    parents: list[tuple[int, A | None]]

    def trace(self, model: Model[S, A], number: int) -> list[tuple[str, str]]:
        steps = []
        while number >= 0:
            parent, action = self.parents[number]
            steps.append(("start" if action is None else str(action), model.describe(self.states[number])))
            number = parent
        return steps[::-1]


def explore(model: Model[S, A], max_states: int = 10_000_000) -> Exploration:
    """Visit every state. Raises CounterexampleError with a shortest trace, and TooManyStatesError."""
    initial = model.initial()
    reached: _Reached[S, A] = _Reached([initial], [(-1, None)])
    known = {model.key(initial)}
    steps = depth = 0
    level_ends, number = 1, 0
    while number < len(reached.states):
        if number == level_ends:
            depth, level_ends = depth + 1, len(reached.states)
        for action, after in _checked_successors(model, reached, number):
            steps += 1
            key = model.key(after)
            if key not in known:
                known.add(key)
                reached.states.append(model.canonical(after))
                reached.parents.append((number, action))
        number += 1
        if number > max_states:
            raise TooManyStatesError(f"more than {max_states:,} states")
    return Exploration(len(reached.states), steps, depth)


def _checked_successors(model: Model[S, A], reached: _Reached[S, A], number: int) -> Iterable[tuple[A, S]]:
    """Check the state and yield its successors. Raises CounterexampleError."""
    state = reached.states[number]
    try:
        model.check(state)
        yield from model.successors(state)
    except ViolationError as violation:
        trace = reached.trace(model, number)
        raise CounterexampleError(str(violation), trace, len(reached.states)) from violation
