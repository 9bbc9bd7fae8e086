"""Growing pauses: how long to wait before trying again what failed for a passing reason."""

import random

FIRST_S = 0.1
LONGEST_S = 15.0


def growing_pause(failures: int) -> float:
    """0.1 s after the first failure, doubling to 15 s, each up to a quarter shorter so that crowds spread."""
    pause = min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 20))
    return pause * random.uniform(0.75, 1)  # noqa: S311  spreading load needs no secret randomness
