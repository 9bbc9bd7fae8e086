"""Which request at a receiver was which recorded try of its delivery. Requests that were none are repeats.

A try has the time when its request began, on the product's clock, and its result. A request belongs to it if it came
about then and, where the try has an HTTP status, was answered so. As many requests as possible are matched, so that
none is called a repeat that need not be one. Of several requests that fit a resend, it is the one with the URL and the
secret of a resend.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf

from chaos.history import TryShown
from chaos.judge.receipts import Receipt, read_http_status
from chaos.judge.run import Run

REQUEST_SECONDS = 12.0
"""A request takes 10 s at most (§6.6), and a busy machine may notice late."""
CLOCK_SECONDS = 0.5
"""How much earlier than its try, as recorded, a request may seem to arrive."""
HELD_BACK_SECONDS = 120.0
"""Around a fault, a request can arrive this much later than it began, or be recorded with a begin this much later."""

_NO_ANSWER = ("hang", "close")
_NEVER_SENT = ("dns", "refused", "unreachable", "tls", "blocked_address")
"""Results of tries that did not even have a connection."""


@dataclass(frozen=True, slots=True)
class MatchedTries:
    receipt_of: dict[int, Receipt]
    """By number of the try."""
    repeats: list[Receipt]
    unreceived: list[TryShown]
    """Tries with an HTTP status that no receiver gave."""


def match_tries(run: Run, delivery: str) -> MatchedTries:
    """Return which receipt was which try of the delivery. It is computed once."""
    if delivery not in run.matched_tries:
        run.matched_tries[delivery] = _match(run, delivery)
    return run.matched_tries[delivery]


def _match(run: Run, delivery: str) -> MatchedTries:
    receipts = run.receipts_of.get(delivery, [])
    # Tries that were surely received come first: what is matched once stays matched.
    tries = sorted(run.tries.get(delivery, ()), key=lambda one: read_http_status(one.result) is None)
    candidates = [_candidates(run, one, receipts) for one in tries]
    try_of: dict[int, int] = {}
    for index in range(len(tries)):
        _assign(index, candidates, try_of, set())
    _exchange(tries, candidates, try_of, [is_of_resend(run, receipt) for receipt in receipts])
    receipt_of = {tries[index].number: receipts[place] for place, index in try_of.items()}
    return MatchedTries(
        receipt_of,
        [
            receipt
            for place, receipt in enumerate(receipts)
            if place not in try_of and not _came_after_listing(run, delivery, receipt)
        ],
        [one for one in tries if read_http_status(one.result) and one.number not in receipt_of],
    )


def _came_after_listing(run: Run, delivery: str, receipt: Receipt) -> bool:
    """Return whether the try may not have been recorded yet when the tries were listed. A receiver may be dead then."""
    shown = run.deliveries.get(delivery)
    return shown is not None and shown.status == "pending" and receipt.at > shown.at - REQUEST_SECONDS


def _assign(index: int, candidates: Sequence[Sequence[int]], try_of: dict[int, int], seen: set[int]) -> bool:
    """Give the try a receipt, moving others to other receipts if need be (a maximum bipartite matching)."""
    for place in candidates[index]:
        if place in seen:
            continue
        seen.add(place)
        if place not in try_of or _assign(try_of[place], candidates, try_of, seen):
            try_of[place] = index
            return True
    return False


def _exchange(
    tries: Sequence[TryShown],
    candidates: Sequence[Sequence[int]],
    try_of: dict[int, int],
    of_resend: Sequence[bool],
) -> None:
    """Exchange receipts that fit both of two tries, where that is more probable.

    A resend has the URL and the secret of a resend. Scheduled tries do not overtake each other, but a resend overtakes
    a scheduled try that hangs: tries are numbered in the order in which they ended.
    """
    for earlier, later in combinations(sorted(try_of), 2):
        first, second = try_of[earlier], try_of[later]
        if later not in candidates[first] or earlier not in candidates[second]:
            continue
        if tries[first].scheduled == tries[second].scheduled:
            is_better = tries[first].number > tries[second].number
        else:
            resend, other = (earlier, later) if tries[second].scheduled else (later, earlier)
            is_better = of_resend[other] and not of_resend[resend]
        if is_better:
            try_of[earlier], try_of[later] = second, first


def _candidates(run: Run, one: TryShown, receipts: Sequence[Receipt]) -> list[int]:
    """Return the places of the receipts that can belong to this try, the nearest in time first."""
    if one.result in _NEVER_SENT:
        return []
    first, last = run.clock.reached_at(one.began_at), run.clock.left_at(one.began_at)
    http_status = read_http_status(one.result)
    fitting = [
        (abs(receipt.at - first), place)
        for place, receipt in enumerate(receipts)
        if _can_be(run, receipt, first, last) and _answer_fits(receipt, http_status)
    ]
    return [place for _, place in sorted(fitting)]


def _can_be(run: Run, receipt: Receipt, first: float, last: float) -> bool:
    if first - CLOCK_SECONDS <= receipt.at <= last + REQUEST_SECONDS:
        return True
    near = first - HELD_BACK_SECONDS <= receipt.at <= last + HELD_BACK_SECONDS
    return near and run.faults.is_around(min(first, receipt.at), max(last, receipt.at))


def _answer_fits(receipt: Receipt, http_status: int | None) -> bool:
    """A try without an HTTP status may have been answered: the answer was lost, or late. A slow answer may be any."""
    if http_status is None or receipt.http_status == http_status:
        return True
    return receipt.http_status is None and receipt.answer not in _NO_ANSWER


def is_of_resend(run: Run, receipt: Receipt) -> bool:
    """Return whether the request has a URL and a secret that the application had after a resend was requested."""
    assert receipt.id is not None
    since = min((resend.began_at for resend in run.resends.get(receipt.id, ())), default=inf)
    application = run.applications.get(receipt.application)
    urls = [] if application is None else [one for one in application.urls if one.value == receipt.url]
    secrets = [receipt.secret] if receipt.secret else []
    return all(any(one.overlaps(since, receipt.at) for one in both) for both in (urls, secrets) if both)
