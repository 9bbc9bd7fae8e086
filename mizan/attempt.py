"""`mizan attempt`: payment attempts whose outcome nobody knows."""

import click

from mizan.installation import installation, transaction_in
from mizan.output import json_option, show_table, timestamp
from shared.attempts.locked import AttemptNotFoundError, lock_attempt
from shared.attempts.outcome import Outcome
from shared.attempts.settling import settle_decided
from shared.attempts.states import AWAITING, CHARGED, UNDER_WAY, Answer
from shared.attempts.undecided import list_undecided
from shared.uuid_text import uuid_in


@click.group("attempt")
def attempt_group() -> None:
    """See and decide payment attempts whose outcome is unknown. ATTEMPT is an attempt's id."""


@attempt_group.command("undecided")
@json_option
def undecided_command(as_json: bool) -> None:
    """List attempts of unknown outcome, oldest first. Without a next question, an operator has to decide."""
    with installation() as settings, transaction_in(settings) as connection:
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
        as_json=as_json,
        empty="The outcome of every attempt is known.",
    )


@attempt_group.command("decide")
@click.argument("attempt", metavar="ATTEMPT")
@click.argument("outcome", type=click.Choice([Answer.PAID.value, Answer.DECLINED.value]))
@click.option("--reason", required=True, help="How you know, for whoever looks at it later.")
@click.option("--reference", help="The provider's own name for the payment, if it was paid.")
def decide_command(attempt: str, outcome: str, reason: str, reference: str | None) -> None:
    """Say what became of an attempt, once you know it from the provider. A payment can never be taken back here."""
    attempt_id = uuid_in(attempt)
    if attempt_id is None:
        raise click.ClickException("ATTEMPT must be an attempt's id, as `mizan attempt undecided` shows")
    with installation() as settings, transaction_in(settings) as connection:
        try:
            found = lock_attempt(connection, attempt_id)
        except AttemptNotFoundError:
            raise click.ClickException(f"there is no attempt {attempt_id}") from None
        # Money that arrived counts whatever we thought; that none did is only worth saying where it is in doubt.
        if found.state in CHARGED or (outcome == Answer.DECLINED and found.state not in UNDER_WAY | AWAITING):
            raise click.ClickException(f"its outcome is known already: it is {found.state}")
        settled = settle_decided(connection, attempt_id, Outcome(Answer(outcome), reason, reference))
    click.echo(f"the attempt is {settled.attempt}, its intent {settled.intent}")
