"""When to ask a provider what became of a request, and how much of its answer to believe. Pure."""

from datetime import timedelta

from shared.attempts.states import Answer

ANSWER_LIMIT = timedelta(seconds=20)
"""How long a request may take to leave, and how long the provider may take to answer; then it is unknown."""

SURELY_ARRIVED_AFTER = 2 * ANSWER_LIMIT
"""From when it was sent: before that, our request may still be on its way."""

FIRST_ASKED_AFTER = ANSWER_LIMIT + timedelta(seconds=5)
"""From when it was sent, where nobody said that it is unknown: whoever waited for the answer is gone."""

ASK_AGAIN_AFTER_S = (10, 20, 60, 300, 900, 3600)
"""After the first question, the second and so on; the last one for ever, for nobody knows how long it takes."""

_NOT_CHARGED_SO_FAR = frozenset({Answer.NOT_FOUND, Answer.NEEDS_CODE, Answer.NEEDS_REDIRECT})


def believed(answer: Answer, *, surely_arrived: bool, first_request: bool) -> Answer:
    """What counts of an answer that may be about an earlier request than the one under way.

    "Not charged" counts once the request must have arrived; and so does "declined" where an earlier request of the
    same attempt may be meant.
    """
    if surely_arrived or answer in (Answer.PAID, Answer.UNKNOWN):
        return answer
    if answer in _NOT_CHARGED_SO_FAR or not first_request:
        return Answer.UNKNOWN
    return answer
