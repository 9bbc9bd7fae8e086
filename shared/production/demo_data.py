"""Demo data in the database: found, so that production does not run with it, and shut off."""

import logging
from typing import Any

import psycopg
from psycopg import Connection, Cursor

from shared import demo
from shared.audit import Action, Actor, record
from shared.db.connections import DatabaseUnavailableError, connection_arguments, translate_outage
from shared.db.pool import Database
from shared.settings import DatabaseSettings

_log = logging.getLogger("shared.production")

_NAMES = {"merchant": demo.MERCHANT, "owner": demo.OWNER, "operator": demo.OPERATOR}
# By the merchant's name too, which only operators give: any merchant can invite somebody with that address.
_DEMO = """
with demo as (select m.id from merchants as m where m.name = %(merchant)s
              and exists (select from members where merchant_id = m.id and email = %(owner)s))"""
_FIND = f"""{_DEMO}
select
  exists (select from operators where email = %(operator)s and removed_at is null),
  exists (select from members where merchant_id in (select id from demo) and removed_at is null),
  exists (select from credentials as c join applications as a on a.id = c.application_id
          where a.merchant_id in (select id from demo) and c.revoked_at is null)"""
_WHAT = ("an operator", "members", "API keys and tokens")

_REMOVE_OPERATOR = """
update operators set removed_at = mizan_now() where email = %(operator)s and removed_at is null returning email"""
_REMOVE_MEMBERS = f"""{_DEMO}
update members set removed_at = mizan_now() where merchant_id in (select id from demo) and removed_at is null
returning merchant_id, email"""
_REVOKE = f"""{_DEMO}
update credentials as c set revoked_at = mizan_now() from applications as a
where a.id = c.application_id and a.merchant_id in (select id from demo) and c.revoked_at is null
returning a.id, c.kind, c.prefix"""
_REMOVE_WEBHOOKS = f"""{_DEMO}
update applications set webhook_url = null where merchant_id in (select id from demo) and webhook_url is not null
returning id, old.webhook_url"""


class DemoDataError(Exception):
    """The database is a demo's, at least in part; the text says what to do."""


class DemoDataCheck:
    """For /readyz, where the database may have been away when the process began: asks until nothing is found, once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_clean = False

    def check(self) -> None:
        if self._is_clean:
            return
        with self._database.cursor() as cursor:
            found = find_demo_data(cursor)
        if found:
            raise DemoDataError(found)
        self._is_clean = True


def look_for_demo_data(settings: DatabaseSettings) -> str | None:
    """As `find_demo_data`. A database that is away, or has no such tables yet, holds up nobody."""
    try:
        arguments = connection_arguments(settings, "production-check")
        with translate_outage(), psycopg.connect(settings.url, **arguments) as connection:
            return find_demo_data(connection.cursor())
    except DatabaseUnavailableError:
        _log.warning("PostgreSQL does not answer; whether it holds demo data is looked at by /readyz")
    except psycopg.ProgrammingError:
        # An older schema, or none; or an address that cannot be read, which others tell of.
        _log.info("the database cannot have demo data: it has no tables for it")
    return None


def find_demo_data(cursor: Cursor[Any]) -> str | None:
    """What is there, and what to do about it; None: nothing."""
    row = cursor.execute(_FIND, _NAMES).fetchone()
    assert row is not None
    found = [what for what, is_there in zip(_WHAT, row, strict=True) if is_there]
    if not found:
        return None
    return (
        f"The database holds the demo's ({', '.join(found)}), whose passwords lie in a file: run `mizan remove-demo`, "
        "or use another database."
    )


def remove_demo_data(connection: Connection[Any], actor: Actor) -> int:
    """Shuts the demo off: nobody signs in any more, no credential is taken, no webhook goes out. What it paid stays in
    the books. Returns how many things that was."""
    operators = connection.execute(_REMOVE_OPERATOR, _NAMES).fetchall()
    for (email,) in operators:
        record(connection, actor, Action.OPERATOR_REMOVED, details={"email": email})
    members = connection.execute(_REMOVE_MEMBERS, _NAMES).fetchall()
    for merchant_id, email in members:
        record(connection, actor, Action.MEMBER_REMOVED, merchant_id=merchant_id, details={"email": email})
    revoked = connection.execute(_REVOKE, _NAMES).fetchall()
    for application_id, kind, prefix in revoked:
        details = {"kind": kind, "prefix": prefix}
        record(connection, actor, Action.CREDENTIAL_REVOKED, application_id=application_id, details=details)
    webhooks = connection.execute(_REMOVE_WEBHOOKS, _NAMES).fetchall()
    for application_id, url in webhooks:
        details = {"url": url}
        record(connection, actor, Action.WEBHOOK_URL_REMOVED, application_id=application_id, details=details)
    return len(operators) + len(members) + len(revoked) + len(webhooks)
