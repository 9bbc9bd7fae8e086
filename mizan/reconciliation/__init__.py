"""`mizan audit`: reconciles all tables and the sandbox's ledger, and finds what is lost, doubled or stuck."""

import sys
from dataclasses import replace

import click

from mizan.command_context import command_settings
from mizan.output import json_option
from mizan.reconciliation.checks import ReportProgress
from mizan.reconciliation.reconciler import ReconciliationResult, reconcile
from mizan.reconciliation.report import show_json, show_text
from shared.platform.database.pool import Database
from shared.platform.database.schema import check_schema
from shared.platform.settings import KafkaSettings, Settings

_EXIT_FAULTS = 1
_EXIT_INCOMPLETE = 2
_STATEMENT_TIMEOUT_S = 900
# Each statement reads whole tables once, month by month where two are partitioned alike. Nested loops would be faster
# only if the planner were right about a table being short.
_PLANNER_SETTINGS = {
    "work_mem": "64MB",
    "jit": "off",
    "enable_nestloop": "off",
    "enable_partitionwise_join": "on",
    "enable_partitionwise_aggregate": "on",
}


class AuditIncompleteError(click.ClickException):
    exit_code = _EXIT_INCOMPLETE


@click.command("audit")
@json_option
@click.option(
    "--database-only",
    is_flag=True,
    help="Do not check the consumers in Kafka, for example on a restored backup.",
)
@click.pass_context
def audit_command(context: click.Context, as_json: bool, database_only: bool) -> None:
    """Cross-check intents, attempts, events, outbox, deliveries, tries and, where there is one, the sandbox's ledger,
    and check that every consumer is alive.

    Exit code 0: nothing is lost, doubled or stuck. 1: something is. 2: the audit could not be completed.
    """
    try:
        with command_settings(uses_kafka=True) as settings:
            kafka = None if database_only else settings.kafka
            result = _reconcile(settings, kafka, _print_progress if sys.stderr.isatty() else _ignore_progress)
    except click.ClickException as error:
        raise AuditIncompleteError(error.message) from error
    (show_json if as_json else show_text)(result)
    if not result.ok:
        context.exit(_EXIT_FAULTS if result.found.findings else _EXIT_INCOMPLETE)


def _reconcile(
    settings: Settings, kafka: KafkaSettings | None, report_progress: ReportProgress
) -> ReconciliationResult:
    patient = replace(settings.database, statement_timeout_s=_STATEMENT_TIMEOUT_S)
    database = Database(patient, "audit", **_PLANNER_SETTINGS)
    try:
        check_schema(database)
        return reconcile(database, kafka, settings.sandbox, report_progress)
    finally:
        database.close()


def _print_progress(what: str) -> None:
    click.echo(f"checking {what} …", err=True)


def _ignore_progress(_what: str) -> None:
    """The output is not a terminal."""
