"""Rules about webhooks as receivers see them (§6): what is sent, to whom, and signed with which secret."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import inf

from chaos.judge.applications import Period
from chaos.judge.changes import earliest_change, sure_changes
from chaos.judge.receipts import SUCCEEDED, Receipt
from chaos.judge.rules import Breach, Damage, RuleTable, clock_time
from chaos.judge.run import Run
from chaos.judge.try_matching import is_of_resend, match_tries

TABLE = RuleTable()

_LAST_TRY = 9


def _subject(receipt: Receipt) -> str:
    return receipt.id or f"a request to {receipt.application}"


@TABLE.add(Damage.WRONG)
def body_is_as_specified(run: Run) -> Iterator[Breach]:
    """The body of a webhook has id, event and data.uuid, and nothing else."""
    for receipt in run.receipts:
        if receipt.problem is not None:
            yield _subject(receipt), f"the body received at {clock_time(receipt.at)} {receipt.problem}"


@TABLE.add(Damage.WRONG)
def webhook_goes_to_its_application(run: Run) -> Iterator[Breach]:
    """A webhook comes to the application that owns the intent."""
    for receipt in run.receipts:
        intent = run.intents.get(receipt.uuid)
        if intent is not None and intent.application != receipt.application:
            what = f"intent {receipt.uuid} belongs to {intent.application}"
            yield (
                _subject(receipt),
                f"{what}, and its webhook came to {receipt.application} at {clock_time(receipt.at)}",
            )


@TABLE.add(Damage.DOUBLED)
def one_id_per_change(run: Run) -> Iterator[Breach]:
    """Each change of an intent has one id, and each id is of one change."""
    ids: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    changes: defaultdict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    named = [(receipt.id, receipt.uuid, receipt.event, receipt.at) for receipt in run.receipts if receipt.id]
    shown = [(one.delivery, one.uuid, one.event, one.at) for one in run.deliveries.values()]
    for id_, uuid, event, at in named + shown:
        ids[uuid, event].setdefault(id_, at)
        changes[id_].setdefault((uuid, event), at)
    for (uuid, event), times in ids.items():
        if len(times) > 1:
            seen = ", ".join(f"{id_} at {clock_time(at)}" for id_, at in times.items())
            yield uuid, f"{event} has {len(times)} ids: {seen}"
    for id_, of in changes.items():
        if len(of) > 1:
            seen = ", ".join(f"{event} of {uuid} at {clock_time(at)}" for (uuid, event), at in of.items())
            yield id_, f"the id is of {len(of)} changes: {seen}"


@TABLE.add(Damage.WRONG, needs_end=True)
def no_webhook_without_change(run: Run) -> Iterator[Breach]:
    """No webhook tells of a change that did not happen."""
    unknown: defaultdict[str, dict[str, Receipt]] = defaultdict(dict)
    for receipt in run.receipts:
        if receipt.id is None:
            continue
        intent = run.intents.get(receipt.uuid)
        if intent is None and receipt.event != SUCCEEDED:
            unknown[receipt.application].setdefault(receipt.uuid, receipt)
        elif intent is None:
            at = clock_time(receipt.at)
            yield receipt.id, f"{receipt.event} at {at} is of the intent {receipt.uuid}, which nobody knows"
        elif intent.final is not None and not _happened(receipt.event, intent.final.status):
            status = intent.final.status
            yield receipt.id, f"{receipt.event} came at {clock_time(receipt.at)}, but the intent is {status}"
    # A create without an answer may have made an intent that no client knows. It expires like others.
    possible = _creates_without_answer(run)
    for application, receipts in unknown.items():
        for receipt in list(receipts.values())[possible.get(application, 0) :]:
            at = clock_time(receipt.at)
            yield _subject(receipt), f"{receipt.event} at {at} is of {receipt.uuid}, which nobody created"


def _happened(event: str, final_status: str) -> bool:
    return final_status == "succeeded" or (final_status == "canceled" and event != SUCCEEDED)


def _creates_without_answer(run: Run) -> dict[str, int]:
    """Return, by application, how many references were sent of which no intent is known."""
    answered = {(one.application, one.merchant_reference) for one in run.creates if one.intent is not None}
    lost = {(one.application, one.merchant_reference) for one in run.creates if one.intent is None} - answered
    counts: defaultdict[str, int] = defaultdict(int)
    for application, _ in lost:
        counts[application] += 1
    return counts


@TABLE.add(Damage.LOST, needs_end=True)
def change_is_received(run: Run) -> Iterator[Breach]:
    """Every succeeded or canceled change is received at least once, if the receiver lives and is not paused."""
    received = {(receipt.application, receipt.uuid, receipt.event) for receipt in run.receipts}
    exhausted = {
        (one.uuid, one.event)
        for one in run.deliveries.values()
        if one.status == "failed" and one.scheduled_tries == _LAST_TRY
    }
    for uuid, intent in run.intents.items():
        application = run.applications.get(intent.application)
        if application is None or not application.receiver_lives or application.may_be_paused_at_end:
            continue
        for event in sure_changes(intent):
            changed = earliest_change(run, uuid, event)
            since = application.surely_has_url_since
            missing = (application.name, uuid, event) not in received and (uuid, event) not in exhausted
            if missing and changed >= since:
                yield uuid, f"{event}, which happened after {clock_time(changed)}, was never received"


@TABLE.add(Damage.LOST, needs_end=True)
def change_has_a_delivery(run: Run) -> Iterator[Breach]:
    """Every succeeded or canceled change has a delivery if its application had a URL, also if it cannot be sent."""
    listed = {(one.uuid, one.event) for one in run.deliveries.values()}
    for uuid, intent in run.intents.items():
        application = run.applications.get(intent.application)
        if application is None:
            continue
        for event in sure_changes(intent):
            changed = earliest_change(run, uuid, event)
            if changed >= application.surely_has_url_since and (uuid, event) not in listed:
                yield uuid, f"{event}, which happened after {clock_time(changed)}, has no delivery"


@TABLE.add(Damage.WRONG)
def signature_is_valid(run: Run) -> Iterator[Breach]:
    """Every webhook is signed with a secret of its application, over the raw body, in lowercase hexadecimal."""
    for receipt in run.receipts:
        if receipt.secret is None and not may_be_unknown_secret(run, receipt):
            at = clock_time(receipt.at)
            yield _subject(receipt), f"no secret of {receipt.application} fits the signature received at {at}"


def may_be_unknown_secret(run: Run, receipt: Receipt) -> bool:
    """Return whether a roll without an answer can explain a signature that fits no secret."""
    application = run.applications.get(receipt.application)
    return application is not None and application.unknown_secret_since <= receipt.at


@TABLE.add(Damage.WRONG)
def secret_is_of_its_time(run: Run) -> Iterator[Breach]:
    """A delivery is signed with the secret that was current when it was created, or when it was resent."""
    for receipt in run.receipts:
        if (
            receipt.id is not None
            and receipt.secret is not None
            and not _in_force(run, receipt, [receipt.secret])
        ):
            times = _period_text(receipt.secret)
            yield receipt.id, f"received at {clock_time(receipt.at)} with a secret that was current {times}"


@TABLE.add(Damage.WRONG)
def url_is_of_its_time(run: Run) -> Iterator[Breach]:
    """A delivery goes to the URL that its application had when it was created, or when it was resent."""
    for receipt in run.receipts:
        application = run.applications.get(receipt.application)
        if receipt.id is None or application is None:
            continue
        periods = [period for period in application.urls if period.value == receipt.url]
        if not _in_force(run, receipt, periods):
            times = "; ".join(map(_period_text, periods)) or "never"
            yield receipt.id, f"received at {clock_time(receipt.at)} at {receipt.url}, which was set {times}"
    for id_, shown in run.deliveries.items():
        application = run.applications.get(shown.application)
        if application is not None and not any(period.value for period in application.urls):
            yield id_, f"it is listed at {clock_time(shown.at)}, but {shown.application} never had a URL"


def _in_force(run: Run, receipt: Receipt, periods: Sequence[Period]) -> bool:
    assert receipt.id is not None
    created_after = earliest_change(run, receipt.uuid, receipt.event)
    created_before = run.receipts_of[receipt.id][0].at
    resent_after = min((resend.began_at for resend in run.resends.get(receipt.id, ())), default=inf)
    return any(
        period.overlaps(created_after, created_before)
        or (resent_after <= receipt.at and period.overlaps(resent_after, receipt.at))
        for period in periods
    )


def _period_text(period: Period) -> str:
    since = "from the beginning" if period.since == -inf else f"since {clock_time(period.since)}"
    return since if period.until == inf else f"{since} until {clock_time(period.until)}"


@TABLE.add(Damage.WRONG)
def retries_keep_secret_and_url(run: Run) -> Iterator[Breach]:
    """All tries of a delivery that nobody resent have one URL and one secret."""
    for id_, receipts in run.receipts_of.items():
        targets = {(receipt.url, receipt.secret) for receipt in receipts}
        if len(targets) > 1 and id_ not in run.resends:
            times = ", ".join(clock_time(receipt.at) for receipt in receipts[:5])
            yield id_, f"its requests at {times} had {len(targets)} different URLs or secrets"


@TABLE.add(Damage.WRONG, needs_end=True)
def resend_uses_current_secret_and_url(run: Run) -> Iterator[Breach]:
    """A resend goes to the URL, and is signed with the secret, that the application has at that time."""
    for id_ in run.resends:
        matched = match_tries(run, id_)
        # With repeats it is not clear which request was the resend.
        if matched.repeats:
            continue
        for one in run.tries.get(id_, ()):
            receipt = matched.receipt_of.get(one.number)
            if receipt is not None and not one.scheduled and not is_of_resend(run, receipt):
                yield id_, f"the resend received at {clock_time(receipt.at)} has an earlier URL or secret"
