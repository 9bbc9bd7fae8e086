"""Revision 0024 on a database with deliveries: every row has its facet, whoever writes it, and it can be repeated."""

from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from shared.platform.settings import DatabaseSettings
from tests.databases import Databases
from tests.shared.platform.database.migrating import migrate_to, revision_before

_REVISION = "0024"
_APPLICATION = UUID(int=1)
_MAKE = """
insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status, next_due_at,
                                last_status_code, last_failure)
select uuidv7(%(age)s * interval '-1 day'), uuidv7(), %(application)s, event, 'https://shop.example/', 1, status,
       case when status = 'pending' then now() end, code, failure
from unnest(array['pending', 'succeeded', 'failed']) as status,
     unnest(array['payment_intent.succeeded', 'payment_intent.canceled']) as event,
     (values (null, null), (null, 'timeout'), (204, null), (302, null), (404, null), (503, null), (999, null))
        as response (code, failure)"""
_WRONG = """
select count(*) from webhook_deliveries
where delivery_facet is distinct from delivery_facet(status, event, last_status_code, last_failure)"""
_INDEXES = """
select relname from pg_class where relname in ('webhook_deliveries_by_facet', 'webhook_deliveries_facets') order by 1"""
_INVALID = "select indexrelid::regclass::text from pg_index where not indisvalid"


@pytest.fixture
def database_before(empty_database: DatabaseSettings) -> DatabaseSettings:
    """A database at the revision before, with deliveries of this month and, in the default partition, of 2020."""
    migrate_to(empty_database, revision_before(_REVISION))
    with psycopg.connect(empty_database.url) as connection:
        for age in (0, (datetime.now(UTC) - datetime(2020, 6, 1, tzinfo=UTC)).days):
            connection.execute(_MAKE, {"age": age, "application": _APPLICATION})
    return empty_database


def test_existing_deliveries_get_their_facet(database_before: DatabaseSettings) -> None:
    migrate_to(database_before, _REVISION)
    with psycopg.connect(database_before.url) as connection:
        assert connection.execute(_WRONG).fetchall() == [(0,)]
        assert connection.execute(
            "select count(distinct delivery_facet) from webhook_deliveries"
        ).fetchall() == [(42,)]
        assert connection.execute(_INVALID).fetchall() == []


def test_writes_of_the_previous_version_keep_the_facet(database_before: DatabaseSettings) -> None:
    """It knows nothing of the column; nor could anybody set it to something else."""
    migrate_to(database_before, _REVISION)
    with psycopg.connect(database_before.url) as connection:
        connection.execute(_MAKE, {"age": 0, "application": _APPLICATION})
        connection.execute("update webhook_deliveries set last_status_code = 500, last_failure = null")
        assert connection.execute(_WRONG).fetchall() == [(0,)]
        connection.execute("update webhook_deliveries set status = 'failed', next_due_at = null")
        connection.execute("update webhook_deliveries set delivery_facet = 1")
        assert connection.execute(_WRONG).fetchall() == [(0,)]


def test_queries_of_the_previous_version_keep_their_index(database_before: DatabaseSettings) -> None:
    """Also in months that are made after the migration. A new database has no previous version."""
    migrate_to(database_before, _REVISION)
    with psycopg.connect(database_before.url) as connection:
        assert connection.execute(_INDEXES).fetchall() == [
            ("webhook_deliveries_by_facet",),
            ("webhook_deliveries_facets",),
        ]


def test_new_database_has_one_index_on_facets(new_database: DatabaseSettings) -> None:
    with psycopg.connect(new_database.url) as connection:
        assert connection.execute(_INDEXES).fetchall() == [("webhook_deliveries_facets",)]


def test_migration_can_be_repeated_after_an_interruption(
    database_before: DatabaseSettings, databases: Databases
) -> None:
    """An index that was not finished is built again; a month that was detached meanwhile is not forgotten."""
    month = f"webhook_deliveries_{datetime.now(UTC):%Y_%m}"
    with psycopg.connect(database_before.url, autocommit=True) as connection:
        connection.execute(f"alter table webhook_deliveries detach partition {month}".encode())
    migrate_to(database_before, _REVISION)
    name = str(conninfo_to_dict(database_before.url)["dbname"])
    with psycopg.connect(databases.admin_url(name), autocommit=True) as connection:
        connection.execute(
            f"update pg_index set indisvalid = false where indexrelid = '{month}_facets'::regclass"
        )
        connection.execute("update alembic_version set version_num = %s", (revision_before(_REVISION),))
        connection.execute("alter table webhook_deliveries disable trigger user")
        connection.execute("update webhook_deliveries set delivery_facet = null")
        connection.execute("alter table webhook_deliveries enable trigger user")
    migrate_to(database_before, _REVISION)
    with psycopg.connect(database_before.url) as connection:
        connection.execute("select make_month_partitions(now()::date)")
        connection.execute(_MAKE, {"age": 0, "application": _APPLICATION})
        assert connection.execute("select count(*) from webhook_deliveries").fetchall() == [(126,)]
        assert connection.execute(_WRONG).fetchall() == [(0,)]
        assert connection.execute(_INVALID).fetchall() == []


def test_months_that_are_made_later_have_column_trigger_and_index(database_before: DatabaseSettings) -> None:
    migrate_to(database_before, _REVISION)
    with psycopg.connect(database_before.url) as connection:
        connection.execute("select make_month_partitions('2020-06-01')")
        connection.execute("update webhook_deliveries_2020_06 set last_status_code = 302")
        assert connection.execute("select count(*) from webhook_deliveries_2020_06").fetchall() == [(42,)]
        assert connection.execute(_WRONG).fetchall() == [(0,)]
        found = connection.execute(
            """select count(*) from pg_inherits join pg_index on indexrelid = inhrelid
               where inhparent = 'webhook_deliveries_facets'::regclass
                 and indrelid = 'webhook_deliveries_2020_06'::regclass"""
        )
        assert found.fetchall() == [(1,)]
