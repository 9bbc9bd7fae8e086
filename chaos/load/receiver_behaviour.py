"""How the receiver of each application behaves over time, drawn from the seed. Pure."""

from enum import StrEnum
from functools import lru_cache
from random import Random

PERIOD_S = 10.0
"""A receiver behaves the same for so long."""


class Behaviour(StrEnum):
    OK = "200"
    ERROR = "500"
    UNAVAILABLE = "503"
    REDIRECT = "302"
    HANG = "hang"
    SLOW = "slow"
    """200 after some seconds."""
    CLOSE_UNREAD = "close_unread"
    """Close the connection when the headers are complete."""
    CLOSE = "close"
    """Close the connection when the request is complete."""
    GARBAGE = "garbage"
    """Answer with something that is not HTTP, and close."""

    @property
    def recorded(self) -> str:
        """Return how the history names it."""
        is_close = self in (Behaviour.CLOSE_UNREAD, Behaviour.GARBAGE)
        return Behaviour.CLOSE.value if is_close else self.value


_FAILURES = tuple(behaviour for behaviour in Behaviour if behaviour not in (Behaviour.OK, Behaviour.SLOW))
_CHANGING = tuple(Behaviour)
_CHANGING_WEIGHTS = tuple(40 if behaviour is Behaviour.OK else 5 for behaviour in Behaviour)
_ALWAYS_HEALTHY_EVERY = 4
_RECOVERS_EVERY = 3
"""A receiver that lives is healthy in one of so many periods: nine tries must not all fail."""


@lru_cache(maxsize=256)
def _drawn(seed: int, receiver: int, period: int, lives: bool) -> Behaviour:
    random = Random(f"{seed}/receiver/{receiver}/{period}")
    if not lives:
        return random.choice(_FAILURES)
    if period % _RECOVERS_EVERY == 0:
        return Behaviour.OK
    return random.choices(_CHANGING, weights=_CHANGING_WEIGHTS)[0]


def behaviour_at(seed: int, receiver: int, elapsed_s: float, lives: bool) -> Behaviour:
    """Return what the receiver with this number does so long after the start of the run.

    One in four is always healthy, so that the judge can compare. One that does not live never answers 2xx.
    """
    if lives and receiver % _ALWAYS_HEALTHY_EVERY == 0:
        return Behaviour.OK
    return _drawn(seed, receiver, int((elapsed_s + receiver) / PERIOD_S), lives)
