"""`mizan remove-demo`: for a database that was tried out with the demo before it goes into production."""

from typing import Any

import click
from psycopg import Connection

from mizan.installation import installation, transaction_in
from mizan.operator_account import operator
from shared.domain.audit_log import Action, Actor, add_audit_entry
from shared.platform.production.demo_data import DEMO_MERCHANT, DEMO_NAMES

_REMOVE_OPERATOR = """
update operators set removed_at = mizan_now() where email = %(operator)s and removed_at is null returning email"""
_REMOVE_MEMBERS = f"""{DEMO_MERCHANT}
update members set removed_at = mizan_now() where merchant_id in (select id from demo) and removed_at is null
returning merchant_id, email"""
_REVOKE = f"""{DEMO_MERCHANT}
update credentials as c set revoked_at = mizan_now() from applications as a
where a.id = c.application_id and a.merchant_id in (select id from demo) and c.revoked_at is null
returning a.id, c.kind, c.prefix"""
_REMOVE_WEBHOOKS = f"""{DEMO_MERCHANT}
update applications set webhook_url = null where merchant_id in (select id from demo) and webhook_url is not null
returning id, old.webhook_url"""


@click.command("remove-demo")
def remove_demo_command() -> None:
    """Shut the demo off: its operator and members are removed, its API keys and tokens revoked, its webhooks ended.
    Its payments stay in the books. Again is fine."""
    with installation() as settings, transaction_in(settings) as connection:
        removed = _remove_demo_data(connection, operator())
    click.echo("the demo is shut off" if removed else "there is no demo here")


def _remove_demo_data(connection: Connection[Any], actor: Actor) -> int:
    """Shuts the demo off: nobody signs in any more, no credential is taken, no webhook goes out. What it paid stays in
    the books. Returns how many things that was."""
    operators = connection.execute(_REMOVE_OPERATOR, DEMO_NAMES).fetchall()
    for (email,) in operators:
        add_audit_entry(connection, actor, Action.OPERATOR_REMOVED, details={"email": email})
    members = connection.execute(_REMOVE_MEMBERS, DEMO_NAMES).fetchall()
    for merchant_id, email in members:
        add_audit_entry(
            connection, actor, Action.MEMBER_REMOVED, merchant_id=merchant_id, details={"email": email}
        )
    revoked = connection.execute(_REVOKE, DEMO_NAMES).fetchall()
    for application_id, kind, prefix in revoked:
        details = {"kind": kind, "prefix": prefix}
        add_audit_entry(
            connection, actor, Action.CREDENTIAL_REVOKED, application_id=application_id, details=details
        )
    webhooks = connection.execute(_REMOVE_WEBHOOKS, DEMO_NAMES).fetchall()
    for application_id, url in webhooks:
        details = {"url": url}
        add_audit_entry(
            connection, actor, Action.WEBHOOK_URL_REMOVED, application_id=application_id, details=details
        )
    return len(operators) + len(members) + len(revoked) + len(webhooks)
