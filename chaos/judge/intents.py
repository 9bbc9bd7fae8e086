"""Rules about intents: they exist for ever, one for each reference, and keep their fields (§4.1, §4.2)."""

from collections import defaultdict
from collections.abc import Iterator

from chaos.history import CreateAnswered, RetrieveAnswered
from chaos.judge.rules import Breach, Damage, RuleTable, clock_time
from chaos.judge.run import Run

TABLE = RuleTable()

_SHED = (408, 429)
"""A body that came too slowly, and too many requests: like 5xx, they say nothing against the request."""
_SHORTEST_EXPIRY = 300.0


@TABLE.add(Damage.LOST)
def acknowledged_intent_exists(run: Run) -> Iterator[Breach]:
    """An intent that was acknowledged exists for ever."""
    for answer in run.retrieves:
        intent = run.intents.get(answer.uuid)
        if intent is None or answer.http_status != 404 or answer.began_at < intent.known_since:
            continue
        known, asked = clock_time(intent.known_since), clock_time(answer.began_at)
        yield answer.uuid, f"it was acknowledged at {known}, but a retrieve at {asked} was answered 404"


@TABLE.add(Damage.LOST, needs_end=True)
def final_state_is_known(run: Run) -> Iterator[Breach]:
    """After settling, every acknowledged intent can be retrieved."""
    for intent in run.intents.values():
        if intent.final is None and intent.is_acknowledged:
            yield intent.uuid, f"known since {clock_time(intent.known_since)}, not retrieved after settling"


@TABLE.add(Damage.DOUBLED)
def one_reference_one_intent(run: Run) -> Iterator[Breach]:
    """All creates of an application with one reference are answered with one intent, the first with 201."""
    answered: defaultdict[tuple[str, str], list[CreateAnswered]] = defaultdict(list)
    for create in run.creates:
        if create.intent is not None:
            answered[create.application, create.merchant_reference].append(create)
    for (_, reference), creates in answered.items():
        uuids = sorted({create.intent.uuid for create in creates if create.intent})
        if len(uuids) > 1:
            times = ", ".join(clock_time(create.at) for create in creates[:4])
            yield reference, f"creates were answered with the intents {', '.join(uuids)} at {times}"
        new = [create for create in creates if create.http_status == 201]
        if len(new) > 1:
            times = ", ".join(clock_time(create.at) for create in new[:4])
            yield reference, f"{len(new)} creates were answered 201, at {times}"


@TABLE.add(Damage.WRONG)
def intent_has_one_owner(run: Run) -> Iterator[Breach]:
    """An intent is shown to the application that created it, and to no other."""
    answers: list[CreateAnswered | RetrieveAnswered] = [*run.creates, *run.retrieves]
    for answer in answers:
        if answer.intent is None or answer.http_status not in (200, 201):
            continue
        owner = run.intents[answer.intent.uuid].application
        if owner != answer.application:
            at = clock_time(answer.at)
            yield answer.intent.uuid, f"it belongs to {owner}, and was shown to {answer.application} at {at}"


@TABLE.add(Damage.WRONG)
def intent_keeps_its_fields(run: Run) -> Iterator[Breach]:
    """Amount, reference and expiry of an intent never change, and a repeated create ignores its other fields."""
    for intent in run.intents.values():
        first = intent.sightings[0]
        expected = (first.seen.amount, first.seen.merchant_reference, first.seen.expires_at)
        for sighting in intent.sightings:
            seen = (sighting.seen.amount, sighting.seen.merchant_reference, sighting.seen.expires_at)
            if seen != expected:
                times = f"at {clock_time(first.at)} and {clock_time(sighting.at)}"
                yield intent.uuid, f"amount, reference and expiry were {expected} and {seen} {times}"
                break


@TABLE.add(Damage.WRONG)
def intent_is_as_requested(run: Run) -> Iterator[Breach]:
    """A new intent has the reference, amount and expiry of its request."""
    for create in run.creates:
        seen = create.intent
        if seen is None or create.http_status not in (200, 201):
            continue
        problems = []
        if seen.merchant_reference != create.merchant_reference:
            problems.append(f"the reference {seen.merchant_reference}")
        if create.http_status == 201 and seen.amount != create.amount:
            problems.append(f"the amount {seen.amount} instead of {create.amount}")
        if create.http_status == 201 and not _expiry_fits(create):
            problems.append(f"an expiry at {clock_time(seen.expires_at)}")
        if problems:
            yield seen.uuid, f"the answer at {clock_time(create.at)} has {' and '.join(problems)}"


def _expiry_fits(create: CreateAnswered) -> bool:
    assert create.intent is not None
    return create.expires_at is None or abs(create.intent.expires_at - create.expires_at) < 0.01


@TABLE.add(Damage.WRONG)
def answer_has_an_intent(run: Run) -> Iterator[Breach]:
    """An answer with 200 or 201 has an intent with all its fields, and a retrieve the intent that was asked for."""
    answers: list[CreateAnswered | RetrieveAnswered] = [*run.creates, *run.retrieves]
    for answer in answers:
        if answer.http_status not in (200, 201):
            continue
        asked = answer.uuid if isinstance(answer, RetrieveAnswered) else None
        if answer.intent is None or asked not in (None, answer.intent.uuid):
            seen = answer.intent.uuid if answer.intent else "nothing that can be read"
            subject = answer.uuid if isinstance(answer, RetrieveAnswered) else answer.merchant_reference
            yield subject, f"it was answered {answer.http_status} at {clock_time(answer.at)} with {seen}"


@TABLE.add(Damage.WRONG)
def valid_request_is_accepted(run: Run) -> Iterator[Breach]:
    """No valid request is refused: no create with 4xx, no retrieve by the owner with 401 or 403."""
    for create in run.creates:
        if _is_refusal(create.http_status) and not _expiry_may_be_too_near(run, create):
            at = clock_time(create.at)
            yield create.merchant_reference, f"its create was answered {create.http_status} at {at}"
    for answer in run.retrieves:
        intent = run.intents.get(answer.uuid)
        if intent is None or intent.application != answer.application:
            continue
        if _is_refusal(answer.http_status) and answer.http_status != 404:
            at = clock_time(answer.at)
            yield answer.uuid, f"its owner's retrieve was answered {answer.http_status} at {at}"


def _is_refusal(http_status: int | None) -> bool:
    return http_status is not None and 300 <= http_status < 500 and http_status not in _SHED


def _expiry_may_be_too_near(run: Run, create: CreateAnswered) -> bool:
    """A request that was held back, or overtaken by a jump of the clock, may ask for an expiry that is too near."""
    if create.http_status != 422 or create.expires_at is None:
        return False
    return create.expires_at <= run.clock.highest(create.at) + _SHORTEST_EXPIRY


@TABLE.add(Damage.WRONG)
def error_only_around_fault(run: Run) -> Iterator[Breach]:
    """Without a fault around it, no request is answered with 5xx, 408 or 429, or not at all."""
    answers: list[CreateAnswered | RetrieveAnswered] = [*run.creates, *run.retrieves]
    for answer in answers:
        status = answer.http_status
        failed = _is_unanswered(run, answer) if status is None else status >= 500 or status in _SHED
        if failed and not run.faults.is_around(answer.began_at, answer.at):
            subject = answer.uuid if isinstance(answer, RetrieveAnswered) else answer.merchant_reference
            times = f"between {clock_time(answer.began_at)} and {clock_time(answer.at)}"
            yield subject, f"a request {times} was answered {status or 'not at all'}, with no fault around it"


def _is_unanswered(run: Run, answer: CreateAnswered | RetrieveAnswered) -> bool:
    """Return whether a client waited in vain. After the load has stopped, clients give up what they do not need."""
    if isinstance(answer, RetrieveAnswered) and answer.after_settling:
        return True
    return run.load_stopped is None or answer.at <= run.load_stopped.at


@TABLE.add(Damage.WRONG)
def intent_was_requested(run: Run) -> Iterator[Breach]:
    """Every intent has a reference that its application sent, with or without an answer."""
    requested = {(create.application, create.merchant_reference) for create in run.creates}
    for intent in run.intents.values():
        if (intent.application, intent.first.merchant_reference) not in requested:
            reference = intent.first.merchant_reference
            yield (
                intent.uuid,
                f"{intent.application} never sent {reference}, seen at {clock_time(intent.known_since)}",
            )
