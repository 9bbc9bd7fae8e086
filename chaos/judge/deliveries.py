"""Rules about deliveries and their tries (§6.6): what the dashboard shows, compared with what receivers saw."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from chaos.history import DeliveryShown, TryShown
from chaos.judge.receipts import Receipt, is_success, read_http_status
from chaos.judge.rules import Breach, Damage, RuleTable, clock_time
from chaos.judge.run import Run
from chaos.judge.try_matching import MatchedTries, match_tries

TABLE = RuleTable()

MAX_TRIES = 9
EARLY_SECONDS = 0.1
"""How much a retry may seem to be early: times are rounded to milliseconds, and clocks are read one after the other."""
ANSWER_SECONDS = 10.0
RECORDED_SECONDS = 180.0
"""A try that is ever recorded is recorded within this time after its request, whatever failed meanwhile."""
RESEND_SECONDS = 120.0
"""A resend is sent within this time, whatever fails meanwhile."""
REPLACED_SECONDS = 0.5
"""A request on another connection so soon after one was closed is the HTTP client's: no process restarts so fast."""


def _scheduled(run: Run, delivery: str) -> list[TryShown]:
    return [one for one in run.tries.get(delivery, ()) if one.scheduled]


@TABLE.add(Damage.LOST, needs_end=True)
def delivery_is_listed(run: Run) -> Iterator[Breach]:
    """The dashboard lists every delivery that was received, once, with its application."""
    for id_, receipts in run.receipts_of.items():
        shown, first = run.deliveries.get(id_), receipts[0]
        if shown is None:
            yield id_, f"received at {clock_time(first.at)}, but not listed after settling"
        elif shown.application != first.application:
            came = f"it came to {first.application} at {clock_time(first.at)}"
            yield id_, f"{came}, and is listed for {shown.application}"
    for id_, count in run.listed.items():
        if count > 1:
            yield id_, f"it is listed {count} times at {clock_time(run.deliveries[id_].at)}"


@TABLE.add(Damage.LOST, needs_end=True, audited=True)
def tries_are_complete(run: Run) -> Iterator[Breach]:
    """The tries of a delivery are numbered from 1 without a gap, and its scheduled tries are counted."""
    for id_, shown in run.deliveries.items():
        tries = run.tries.get(id_, [])
        numbers = [one.number for one in tries]
        if numbers != list(range(1, len(numbers) + 1)):
            yield id_, f"its tries have the numbers {numbers}, read at {clock_time(shown.at)}"
        scheduled = len(_scheduled(run, id_))
        if scheduled != shown.scheduled_tries:
            counted = f"it counts {shown.scheduled_tries} scheduled tries"
            yield id_, f"{counted}, but shows {scheduled}, read at {clock_time(shown.at)}"
    for id_ in run.tries.keys() - run.deliveries.keys():
        yield id_, f"its tries are listed at {clock_time(run.tries[id_][0].at)}, but not the delivery"


@TABLE.add(Damage.DOUBLED, needs_end=True)
def at_most_nine_tries(run: Run) -> Iterator[Breach]:
    """A delivery has at most 9 scheduled tries."""
    for id_, shown in run.deliveries.items():
        count = max(shown.scheduled_tries, len(_scheduled(run, id_)))
        if count > MAX_TRIES:
            yield id_, f"it has {count} scheduled tries, read at {clock_time(shown.at)}"


@TABLE.add(Damage.WRONG, needs_end=True)
def retry_is_never_early(run: Run) -> Iterator[Breach]:
    """A retry comes no earlier after the try before it than the schedule says, on the product's clock."""
    for id_ in run.tries:
        tries = _scheduled(run, id_)
        for delay, before, after in zip(run.retry_delays, tries, tries[1:], strict=False):
            waited, least = after.began_at - before.began_at, delay + _least_duration(run, before)
            if waited < least - EARLY_SECONDS:
                times = f"{clock_time(before.began_at)} and {clock_time(after.began_at)}"
                yield id_, f"its tries at {times} are {waited:.1f} s apart instead of {least:g} s or more"
        yield from _early_requests(run, id_, tries)


def _least_duration(run: Run, one: TryShown) -> float:
    """Return how long a try took at least: the schedule counts from its end. One that hung had all its time (§6.6)."""
    if one.result != "timeout":
        return 0.0
    receipt = match_tries(run, one.delivery).receipt_of.get(one.number)
    return ANSWER_SECONDS if receipt is not None and receipt.answer == "hang" else 0.0


def _early_requests(run: Run, id_: str, tries: list[TryShown]) -> Iterator[Breach]:
    """Compare the requests themselves, where it is clear which is which: those that were answered, without repeats."""
    if len(tries) < 2 or id_ in run.resends:
        return
    matched = match_tries(run, id_)
    if matched.repeats:
        return
    for delay, before, after in zip(run.retry_delays, tries, tries[1:], strict=False):
        first, second = matched.receipt_of.get(before.number), matched.receipt_of.get(after.number)
        if first is None or second is None or read_http_status(before.result) is None:
            continue
        waited = run.clock.highest(second.at) - run.clock.lowest(first.at)
        if waited < delay - EARLY_SECONDS:
            times = f"{clock_time(first.at)} and {clock_time(second.at)}"
            yield id_, f"its requests came at {times}, {waited:.1f} s apart instead of {delay:g} s or more"


@TABLE.add(Damage.WRONG, needs_end=True, audited=True)
def status_follows_from_tries(run: Run) -> Iterator[Breach]:
    """A delivery is succeeded after a 2xx and then has no scheduled try, failed after 9 others, and else pending."""
    for id_, shown in run.deliveries.items():
        tries = run.tries.get(id_, [])
        successes = [one.number for one in tries if is_success(read_http_status(one.result))]
        expected = "succeeded" if successes else "failed" if shown.scheduled_tries >= MAX_TRIES else "pending"
        if shown.status != expected:
            results = ", ".join(one.result for one in tries)
            yield id_, f"it is {shown.status} at {clock_time(shown.at)}, after {results or 'no try'}"
        late = [one for one in tries if one.scheduled and successes and one.number > successes[0]]
        if late:
            yield id_, f"it was tried again at {clock_time(late[0].began_at)}, after it had succeeded"


@TABLE.add(Damage.WRONG, needs_end=True)
def answered_try_was_received(run: Run) -> Iterator[Breach]:
    """A try that is shown with an HTTP status was received, and answered so."""
    for id_ in run.tries:
        for one in match_tries(run, id_).unreceived:
            began = clock_time(one.began_at)
            yield (
                id_,
                f"its try {one.number} at {began} shows {one.result}, but no receiver answered that then",
            )


@TABLE.add(Damage.LOST, needs_end=True)
def accepted_delivery_succeeds(run: Run) -> Iterator[Breach]:
    """A delivery that was answered 2xx at once is succeeded, unless a fault can have lost the answer."""
    for id_, shown in run.deliveries.items():
        if shown.status == "succeeded":
            continue
        for receipt in run.receipts_of.get(id_, ()):
            if is_success(receipt.http_status) and not run.faults.is_around(receipt.at, receipt.at):
                yield id_, f"answered {receipt.answer} at {clock_time(receipt.at)}, but it is {shown.status}"
                break


@TABLE.add(Damage.DOUBLED, needs_end=True)
def repeat_only_around_fault(run: Run) -> Iterator[Breach]:
    """A request that is no recorded try, a repeat, comes only around a fault of a process, a store or the network."""
    for id_, repeat in _repeats(run):
        is_excused = run.faults.process_or_network_is_around(repeat.at, repeat.at)
        if not is_excused and follows_closed_connection(run, id_, repeat) is None:
            yield (
                id_,
                f"it was sent at {clock_time(repeat.at)}, which is no recorded try, and no fault was around",
            )


@TABLE.add(Damage.DOUBLED, needs_end=True)
def closed_connection_is_replaced_once(run: Run) -> Iterator[Breach]:
    """A request is sent again at once only if the receiver closed a kept connection, and only one time."""
    first_used = first_use_of_connections(run)
    for id_, matched in all_repeats(run):
        for chain in closed_chains(run, id_):
            recorded = sum(one not in matched.repeats for one in chain)
            # Around a fault, a second process may have the same record, and send it in the same moment.
            is_excused = run.faults.process_or_network_is_around(chain[0].at, chain[-1].at)
            if recorded < len(chain) and _fewest_senders(chain, first_used) > max(1, recorded) + is_excused:
                connections = ", ".join(f"{one.connection} at {clock_time(one.at)}" for one in chain)
                tries = "one recorded try" if recorded == 1 else f"{recorded} recorded tries"
                yield id_, f"its connections were closed, and it came on {connections}, but this is {tries}"


def closed_chains(run: Run, id_: str) -> list[list[Receipt]]:
    """Return the requests of a delivery that came at once after each other because connections were closed."""
    chains: list[list[Receipt]] = []
    for first, second in closed_pairs(run, id_):
        if chains and chains[-1][-1] is first:
            chains[-1].append(second)
        else:
            chains.append([first, second])
    return chains


def _fewest_senders(chain: Sequence[Receipt], first_used: Mapping[int, float]) -> int:
    """Return how often the request must have been begun, if each time it was sent twice at most.

    A kept connection may have been closed before the request came, so the next request may replace it. A new connection
    was closed because of the request.
    """
    senders = to_be_replaced = 0
    for one in chain:
        if to_be_replaced:
            to_be_replaced -= 1
            continue
        senders += 1
        to_be_replaced += first_used[one.connection] < one.at
    return senders


def first_use_of_connections(run: Run) -> dict[int, float]:
    """Return when the first request came on each connection."""
    first: dict[int, float] = {}
    for receipt in run.receipts:
        first[receipt.connection] = min(receipt.at, first.get(receipt.connection, receipt.at))
    return first


def _repeats(run: Run) -> Iterator[tuple[str, Receipt]]:
    return ((id_, repeat) for id_, matched in all_repeats(run) for repeat in matched.repeats)


def closed_pairs(run: Run, id_: str) -> list[tuple[Receipt, Receipt]]:
    """Return the successive requests of a delivery where the second came at once after the first was closed."""
    return [
        (first, second)
        for first, second in pairwise(run.receipts_of[id_])
        if first.answer == "close"
        and second.connection != first.connection
        and second.at - first.at < REPLACED_SECONDS
    ]


def follows_closed_connection(run: Run, id_: str, repeat: Receipt) -> tuple[Receipt, Receipt] | None:
    """Return the repeat and its neighbour if the second of them came at once after the first was closed.

    Which of the two is called the repeat is arbitrary. Of two neighbours, it is the one that is nearer in time.
    """
    pairs = [pair for pair in closed_pairs(run, id_) if repeat in pair]
    return min(pairs, key=lambda pair: pair[1].at - pair[0].at, default=None)


@TABLE.add(Damage.DOUBLED, needs_end=True)
def no_request_after_recorded_success(run: Run) -> Iterator[Breach]:
    """What was recorded as succeeded is not sent again, whatever fails later, unless somebody resends it."""
    for id_, matched in all_repeats(run):
        accepted = [
            matched.receipt_of[one.number].at
            for one in run.tries.get(id_, ())
            if one.number in matched.receipt_of and is_success(read_http_status(one.result))
        ]
        resent = min((resend.began_at for resend in run.resends.get(id_, ())), default=None)
        for repeat in matched.repeats:
            if not accepted or repeat.at <= accepted[0] + RECORDED_SECONDS:
                continue
            if resent is None or repeat.at < resent:
                yield (
                    id_,
                    f"sent at {clock_time(repeat.at)}, after it was accepted at {clock_time(accepted[0])}",
                )


def all_repeats(run: Run) -> Iterator[tuple[str, MatchedTries]]:
    """Yield the deliveries that were received more often than they have tries, or not when their tries were."""
    for id_, receipts in run.receipts_of.items():
        matched = match_tries(run, id_)
        if len(receipts) > len(matched.receipt_of):
            yield id_, matched


@TABLE.add(Damage.LOST, needs_end=True)
def resend_is_one_try(run: Run) -> Iterator[Breach]:
    """Each acknowledged resend makes one try, unless its application is paused then, and there are no others."""
    for id_, shown in run.deliveries.items():
        resends = run.resends.get(id_, [])
        made = sum(1 for one in run.tries.get(id_, ()) if not one.scheduled)
        application = run.applications.get(shown.application)
        owed = sum(
            1
            for one in resends
            if one.acknowledged
            and application is not None
            and not application.may_be_paused_between(one.began_at, one.at + RESEND_SECONDS)
        )
        if not owed <= made <= len(resends):
            times = ", ".join(clock_time(resend.began_at) for resend in resends) or "never"
            yield id_, f"a resend was requested {len(resends)} times ({times}), and {made} were made"


@TABLE.add(Damage.STUCK, needs_end=True)
def nothing_is_pending(run: Run) -> Iterator[Breach]:
    """After settling, no delivery to a receiver that lives and is not paused is pending."""
    for id_, shown in run.deliveries.items():
        if shown.status == "pending" and _must_settle(run, shown):
            yield id_, f"it is pending at {clock_time(shown.at)}, after {shown.scheduled_tries} tries"


def _must_settle(run: Run, shown: DeliveryShown) -> bool:
    application = run.applications.get(shown.application)
    return application is not None and application.receiver_lives and not application.may_be_paused_at_end
