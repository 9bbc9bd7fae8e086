"""Exponential backoff with jitter for transient failures."""

import random

FIRST_S = 0.1
LONGEST_S = 15.0


def backoff_delay(failures: int) -> float:
    """Return 0.1 s after the first failure, doubling up to 15 s, less up to a quarter at random to spread retries."""
    pause = min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 20))
    return pause * random.uniform(0.75, 1)  # noqa: S311  spreading load needs no secret randomness
