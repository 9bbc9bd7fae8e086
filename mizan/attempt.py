"""`mizan attempt`: payment attempts of unknown outcome, and duplicate payments."""

from uuid import UUID

import click

from mizan.command_context import acting_operator, command_settings, open_transaction
from mizan.output import CommandGroup, json_option, show_table, timestamp
from shared.domain.attempts.duplicates import list_open_duplicates, mark_handled
from shared.domain.attempts.operator_decision import OperatorDecision, apply_decision
from shared.domain.attempts.states import ProviderAnswer
from shared.domain.attempts.undecided import list_undecided
from shared.platform.uuids import parse_uuid


def _attempt_in(_context: click.Context, _parameter: click.Parameter, text: str) -> UUID:
    attempt = parse_uuid(text)
    if attempt is None:
        raise click.ClickException("ATTEMPT must be an attempt's id, as `mizan attempt undecided` shows")
    return attempt


attempt_argument = click.argument("attempt", metavar="ATTEMPT", callback=_attempt_in)


@click.group("attempt", cls=CommandGroup)
def attempt_group() -> None:
    """See and decide payment attempts whose outcome is unknown. ATTEMPT is an attempt's id."""


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
@click.option("--reference", help="The provider's reference of the payment, if it was paid.")
def decide_command(attempt: UUID, outcome: str, reason: str, reference: str | None) -> None:
    """Record the outcome of an attempt, once you know it from the provider. A payment cannot be undone here."""
    decision = OperatorDecision(outcome == ProviderAnswer.PAID, reason, reference or "")
    with command_settings() as settings, open_transaction(settings) as connection:
        settled = apply_decision(connection, attempt, decision, acting_operator())
    click.echo(f"the attempt is {settled.attempt}, its intent {settled.intent}")


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
        empty="No payment was made twice, or all that were have been handled.",
    )


@attempt_group.command("handled")
@attempt_argument
@click.option("--note", required=True, help="What was done, for example the reference of the refund.")
def handled_command(attempt: UUID, note: str) -> None:
    """Mark a duplicate payment as handled, for example refunded. This command refunds nothing."""
    with command_settings() as settings, open_transaction(settings) as connection:
        is_new = mark_handled(connection, attempt, note, acting_operator())
    click.echo("handled" if is_new else "it was handled before; nothing changed")
