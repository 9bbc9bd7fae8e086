"""`mizan audit`: cross-checks all books, and finds what is lost, doubled or stuck."""

import sys
from dataclasses import replace

import click

from mizan.audit.again import Say
from mizan.audit.looking import Audited, audit
from mizan.audit.report import show_json, show_text
from mizan.installation import installation
from mizan.output import json_option
from shared.platform.database.pool import Database
from shared.platform.database.schema import check_schema
from shared.platform.settings import Settings

_FOUND = 1
_COULD_NOT_LOOK = 2
_STATEMENT_TIMEOUT_S = 900
# Each statement goes once over whole tables, month by month where two of them are divided alike. Row by row would be
# faster only where the planner is right about a table being short.
_PLANS = {
    "work_mem": "64MB",
    "jit": "off",
    "enable_nestloop": "off",
    "enable_partitionwise_join": "on",
    "enable_partitionwise_aggregate": "on",
}


class CouldNotLookError(click.ClickException):
    exit_code = _COULD_NOT_LOOK


@click.command("audit")
@json_option
@click.pass_context
def audit_command(context: click.Context, as_json: bool) -> None:
    """Cross-check intents, attempts, events, outbox, deliveries, tries and, where there is one, the sandbox's ledger.

    Exit code 0: nothing is lost, doubled or stuck. 1: something is. 2: it could not be looked.
    """
    try:
        with installation() as settings:
            audited = _audited(settings, _say if sys.stderr.isatty() else _say_nothing)
    except click.ClickException as error:
        raise CouldNotLookError(error.message) from error
    (show_json if as_json else show_text)(audited)
    if not audited.ok:
        context.exit(_FOUND if audited.found.findings else _COULD_NOT_LOOK)


def _audited(settings: Settings, say: Say) -> Audited:
    patient = replace(settings.database, statement_timeout_s=_STATEMENT_TIMEOUT_S)
    database = Database(patient, "audit", **_PLANS)
    try:
        check_schema(database)
        return audit(database, settings.sandbox.url if settings.sandbox else None, say)
    finally:
        database.close()


def _say(what: str) -> None:
    click.echo(f"looking at {what} …", err=True)


def _say_nothing(_what: str) -> None:
    """Nobody watches."""
