"""When to ask a provider what became of an attempt that it has not answered, and what to make of the answer. Pure."""

from datetime import timedelta

from shared.attempts.states import Answer

ANSWER_LIMIT = timedelta(seconds=20)
"""How long a provider may take to answer; then the attempt's outcome is unknown."""

FIRST_ASKED_AFTER = ANSWER_LIMIT + timedelta(seconds=5)
"""From when it was sent, where nobody said that it is unknown: whoever waited for the answer is gone."""

ASK_AGAIN_AFTER_S = (10, 20, 60, 300, 900, 3600)
"""After the first question, the second and so on; the last one for ever, for nobody knows how long it takes."""

SURELY_ARRIVED_AFTER = 2 * ANSWER_LIMIT
"""From when it was sent: before that, our request may still be on its way."""

_NOT_CHARGED_SO_FAR = frozenset({Answer.NOT_FOUND, Answer.NEEDS_CODE, Answer.NEEDS_REDIRECT})


def believed(answer: Answer, *, surely_arrived: bool) -> Answer:
    """What an answer to our question means: "not charged" only counts once the request must have arrived."""
    return Answer.UNKNOWN if answer in _NOT_CHARGED_SO_FAR and not surely_arrived else answer
