"""Stores the facet of each delivery in a column, with an index on it.

The index on the expression could not serve filters under row-level security: PostgreSQL checks the policy of a table
before any function that is not leakproof, and the arithmetic of delivery_facet() is not.

The column is kept by a trigger. A generated column would have to be added by rewriting every partition, while nobody
can read or write deliveries (docs/decisions/0019-row-level-security.md). The trigger works for the previous version,
too. Its queries need the index on the expression, so a later revision drops that one.
"""

from uuid import UUID

import sqlalchemy
from alembic import op

revision = "0024"
down_revision = "0022"

_BATCH = 2000
_COLUMN = "add column if not exists delivery_facet smallint"
_INDEX = "webhook_deliveries_facets"
# The function names its schema: setting a search_path would take a third of its time, at every delivery.
_STATEMENTS = (
    f"alter table webhook_deliveries {_COLUMN}",
    """
    comment on column webhook_deliveries.delivery_facet is
        'of its status, event and last response: delivery_facet() of them, kept by a trigger'""",
    """
    create or replace function set_delivery_facet() returns trigger language plpgsql as $$
    begin
        new.delivery_facet := public.delivery_facet(new.status, new.event, new.last_status_code, new.last_failure);
        return new;
    end $$""",
    """
    create or replace trigger webhook_deliveries_facet
        before insert or update of status, event, last_status_code, last_failure, delivery_facet
        on webhook_deliveries for each row execute function set_delivery_facet()""",
)
# A month that was detached is attached again if it has unfinished deliveries, so it needs the column, too.
_PARTITIONS = """
select relname, relispartition from pg_class
where relnamespace = 'public'::regnamespace and relkind = 'r'
  and relname ~ '^webhook_deliveries_([0-9]{4}_[0-9]{2}|default)$' order by relname"""
# In the order of ids, like those who record tries, so that nobody waits for each other.
_FILL = """
with batch as materialized (
    select array(select id from {table} where id > '{after}' order by id limit {limit}) as ids),
filled as (
    update {table} set delivery_facet = delivery_facet(status, event, last_status_code, last_failure)
    where id = any((select ids from batch)::uuid[]) and delivery_facet is null)
select ids[cardinality(ids)] from batch"""
_INDEX_COLUMNS = "(application_id, delivery_facet, id)"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for statement in _STATEMENTS:
            op.execute(statement)
        connection = op.get_bind()
        partitions = {row[0]: row[1] for row in connection.exec_driver_sql(_PARTITIONS)}
        for table, is_attached in partitions.items():
            if not is_attached:
                op.execute(f"alter table {table} {_COLUMN}")
            _fill(connection, table)
        op.execute(f"create index if not exists {_INDEX} on only webhook_deliveries {_INDEX_COLUMNS}")
        for table in partitions:
            _make_index(connection, table)
        if not _exists(connection, "select from webhook_deliveries limit 1"):
            op.execute("drop index if exists webhook_deliveries_by_facet")  # there is no previous version


def _fill(connection: sqlalchemy.Connection, table: str) -> None:
    """Fill the column of the rows that have none, in small transactions."""
    connection.exec_driver_sql("set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off")
    after: UUID | None = UUID(int=0)
    while after is not None:
        after = connection.exec_driver_sql(_FILL.format(table=table, after=after, limit=_BATCH)).scalar()
    connection.exec_driver_sql("reset enable_seqscan; reset enable_bitmapscan; reset enable_sort")


def _make_index(connection: sqlalchemy.Connection, table: str) -> None:
    """Build the index of a partition while others write to it, and attach it to that of the parent."""
    name = f"{table}_facets"
    if _exists(connection, _INDEX_STATE.format(name=name, condition="not i.indisvalid")):
        op.execute(f"drop index concurrently {name}")  # an interrupted migration has left it
    if not _exists(connection, _INDEX_STATE.format(name=name, condition="true")):
        how = "concurrently" if _exists(connection, f"select from {table} limit 1") else ""
        op.execute(f"create index {how} {name} on {table} {_INDEX_COLUMNS}")
    if _exists(connection, f"select from pg_class where relname = '{table}' and relispartition"):
        op.execute(f"alter index {_INDEX} attach partition {name}")


_INDEX_STATE = "select from pg_index as i where i.indexrelid = to_regclass('{name}') and {condition}"


def _exists(connection: sqlalchemy.Connection, query: str) -> bool:
    return bool(connection.exec_driver_sql(f"select exists ({query})").scalar())
