"""`mizan attempt`: payment attempts of unknown outcome, and duplicate payments."""

from time import monotonic, sleep
from uuid import UUID

import click

from mizan.command_context import acting_operator, command_settings, open_database, open_transaction
from mizan.output import CommandGroup, json_option, show_table, timestamp
from shared.domain.attempts.decision_rules import OperatorDecision, RecordedAnswer
from shared.domain.attempts.duplicates import list_open_duplicates, mark_handled
from shared.domain.attempts.operator_decision import (
    ProposedDecision,
    check_attempt,
    decide_attempt,
    lock_facts,
)
from shared.domain.attempts.states import AttemptSnapshot, ProviderAnswer
from shared.domain.attempts.status_inquiries import ask_provider, can_be_asked, get_inquiry
from shared.domain.attempts.undecided import list_undecided
from shared.platform.database.pool import Database
from shared.platform.errors import RefusedError
from shared.platform.uuids import parse_uuid

_POLL_S = 0.2


class NoAnswerRecordedError(RefusedError):
    """The verifier has recorded no answer of the provider in time. Nothing was decided."""

    def __init__(self, waited_s: float) -> None:
        super().__init__(
            f"nothing was decided: no answer of the provider was recorded within {waited_s:g} seconds. Check that the"
            " scheduler and the verifier run (`mizan lag`), then decide again"
        )


def _attempt_in(_context: click.Context, _parameter: click.Parameter, text: str) -> UUID:
    attempt = parse_uuid(text)
    if attempt is None:
        raise click.ClickException("ATTEMPT must be an attempt's id, as `mizan attempt undecided` shows")
    return attempt


attempt_argument = click.argument("attempt", metavar="ATTEMPT", callback=_attempt_in)


@click.group("attempt", cls=CommandGroup)
def attempt_group() -> None:
    """List and decide payment attempts whose outcome is unknown. ATTEMPT is an attempt's id."""


@attempt_group.command("undecided")
@json_option
def undecided_command(as_json: bool) -> None:
    """List attempts of unknown outcome, oldest first. One without a next inquiry needs an operator's decision."""
    with command_settings() as settings, open_transaction(settings) as connection:
        undecided = list_undecided(connection)
    show_table(
        [
            {
                "attempt_id": one.attempt,
                "intent": one.intent,
                "reference": one.reference.upper(),
                "amount": one.amount,
                "method": one.method,
                "provider": one.provider,
                "state": one.state,
                "since": timestamp(one.since),
                "asked": one.verifications,
                "asked_next_at": timestamp(one.next_verify_at),
            }
            for one in undecided
        ],
        "attempts",
        as_json=as_json,
        empty="The outcome of every attempt is known.",
    )


@attempt_group.command("decide")
@attempt_argument
@click.argument("outcome", type=click.Choice([ProviderAnswer.PAID.value, ProviderAnswer.DECLINED.value]))
@click.option("--reason", required=True, help="How you know it; recorded with the decision.")
@click.option("--reference", help="The provider's reference of the payment; required if it was paid.")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(0, 3600),
    default=60,
    show_default=True,
    help="Seconds to wait for the provider's answer, if it has a status call.",
)
def decide_command(attempt: UUID, outcome: str, reason: str, reference: str | None, wait_s: float) -> None:
    """Record the outcome of an attempt, once you know it from the provider. A payment cannot be undone here.

    A provider with a status call is asked first, and a decision that contradicts its answer is refused. Large amounts,
    and a payment on an attempt that has ended, are only proposed: an operator has to approve them in the monitor.
    """
    decision = OperatorDecision(outcome == ProviderAnswer.PAID, reason, reference or "")
    with command_settings() as settings, open_database(settings) as database:
        snapshot = _check_and_ask(database, attempt, decision, wait_s)
        with database.transaction() as connection:
            decided = decide_attempt(
                connection,
                attempt,
                decision,
                acting_operator(),
                snapshot=snapshot,
                approval_above=settings.decision_approval_above,
            )
    if isinstance(decided, ProposedDecision):
        click.echo("proposed; nothing is changed until an operator approves it in the monitor")
    else:
        click.echo(f"the attempt is {decided.attempt}, its intent {decided.intent}")


def _check_and_ask(
    database: Database, attempt: UUID, decision: OperatorDecision, wait_s: float
) -> AttemptSnapshot:
    """Check the decision and, if the provider can be asked, wait for its answer. Return the attempt before that.

    Raises a RefusedError if the attempt cannot be decided so, or if no answer is recorded in time.
    """
    with database.transaction() as connection:
        facts = lock_facts(connection, attempt)
        check_attempt(connection, facts.locked, facts.locked.snapshot, is_paid=decision.is_paid)
        decision.outcome()  # raises if a text is not acceptable
        if not can_be_asked(facts.locked.provider):
            return facts.locked.snapshot
        inquiry = ask_provider(connection, attempt, acting_operator())
    deadline = monotonic() + wait_s
    while (answer := _recorded_answer(database, inquiry)) is None:
        if monotonic() >= deadline:
            raise NoAnswerRecordedError(wait_s)
        sleep(_POLL_S)
    click.echo(f"{facts.locked.provider} was asked and answered: {answer}", err=True)
    return facts.locked.snapshot


def _recorded_answer(database: Database, inquiry: UUID) -> RecordedAnswer | None:
    with database.cursor() as cursor:
        return get_inquiry(cursor, inquiry).answer


@attempt_group.command("duplicates")
@json_option
def duplicates_command(as_json: bool) -> None:
    """List duplicate payments that nobody has handled, oldest first."""
    with command_settings() as settings, open_transaction(settings) as connection:
        duplicates = list_open_duplicates(connection)
    show_table(
        [
            {
                "attempt_id": one.attempt,
                "intent": one.intent,
                "reference": one.reference.upper(),
                "amount": one.amount,
                "method": one.method,
                "provider": one.provider,
                "provider_reference": one.provider_reference,
                "first_reference": one.first_reference,
                "at": timestamp(one.at),
                "application_id": one.application_id,
            }
            for one in duplicates
        ],
        "duplicates",
        as_json=as_json,
        empty="There are no unhandled duplicate payments.",
    )


@attempt_group.command("handled")
@attempt_argument
@click.option("--note", required=True, help="What was done, for example the reference of the refund.")
def handled_command(attempt: UUID, note: str) -> None:
    """Mark a duplicate payment as handled, for example refunded. This command refunds nothing."""
    with command_settings() as settings, open_transaction(settings) as connection:
        is_new = mark_handled(connection, attempt, note, acting_operator())
    click.echo("handled" if is_new else "already handled; nothing changed")
