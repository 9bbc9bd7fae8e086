"""Monthly partitions for tests: created, filled, dropped and inspected. Months count back from the current one."""

from typing import Any
from uuid import UUID

from prometheus_client import REGISTRY
from psycopg import sql

from shared.platform.database.pool import Database
from shared.platform.settings import RetentionSettings

KEPT = RetentionSettings(events_months=3, deliveries_months=2)
PARENTS = ("intent_events", "webhook_deliveries", "webhook_tries")
KEYS = {"intent_events": "id", "webhook_deliveries": "id", "webhook_tries": "delivery_id"}

MONTH = """(date_trunc('month', uuid_extract_timestamp(uuidv7()) at time zone 'UTC')
             - make_interval(months => %s)) at time zone 'UTC'"""


class History:
    def __init__(self, database: Database) -> None:
        self.database = database

    def run(self, statement: str, *values: object, **names: str) -> list[Any]:
        """Return the rows of the statement, if it has any; `names` fill its {identifiers}."""
        named = sql.SQL(statement).format(**{key: sql.Identifier(name) for key, name in names.items()})
        with self.database.transaction() as connection:
            cursor = connection.execute(named, values)
            return cursor.fetchall() if cursor.description else []

    def make(self, *months_ago: int) -> None:
        for ago in months_ago:
            self.run(f"select make_month_partitions(({MONTH})::date)", ago)

    def name(self, parent: str, months_ago: int) -> str:
        ((month,),) = self.run(f"select to_char({MONTH}, 'YYYY_MM')", months_ago)
        return f"{parent}_{month}"

    def detach(self, parent: str, months_ago: int) -> None:
        self.run(
            "alter table {parent} detach partition {month}",
            parent=parent,
            month=self.name(parent, months_ago),
        )

    def take_away(self, *months_ago: int) -> None:
        for parent in PARENTS:
            for ago in months_ago:
                self.run("drop table {month}", month=self.name(parent, ago))

    def add(self, months_ago: int, milliseconds: int = 0, **columns: str) -> UUID:
        """Add an event, its delivery and a try, so long after the month starts; finished unless `columns` differ."""
        (row,) = self.run(f"select uuid7_floor({MONTH} + %s * interval '1 ms')", months_ago, milliseconds)
        id_ = UUID(str(row[0]))
        finished = {"type": "payment_intent.succeeded", "taken_in_at": "2020-01-01", "status": "succeeded"}
        values = {"id": id_, **finished, **columns}
        with self.database.transaction() as connection:
            connection.execute(
                """insert into intent_events (id, intent_uuid, seq, type, at, taken_in_at)
                   values (%(id)s, %(id)s, 1, %(type)s, now(), nullif(%(taken_in_at)s, 'never')::timestamptz)""",
                values,
            )
            connection.execute(
                """insert into webhook_deliveries (id, intent_uuid, application_id, event, url, secret_version, status,
                                                   next_due_at)
                   values (%(id)s, %(id)s, %(id)s, %(type)s, 'https://shop.example', 1, %(status)s,
                           case when %(status)s = 'pending' then now() end)""",
                values,
            )
            connection.execute(
                """insert into webhook_tries (delivery_id, number, step, at, duration_ms, url)
                   values (%(id)s, 1, 1, now(), 5, 'https://shop.example')""",
                values,
            )
        return id_

    def ids(self, parent: str) -> list[UUID]:
        rows = self.run("select {key} from {parent} order by 1", key=KEYS[parent], parent=parent)
        return [row[0] for row in rows]

    def place(self, parent: str, id_: UUID) -> str:
        """Return the partition that a row is in."""
        statement = "select tableoid::regclass::text from {parent} where {key} = %s"
        ((name,),) = self.run(statement, id_, key=KEYS[parent], parent=parent)
        return str(name)

    def attached(self, parent: str) -> set[str]:
        """Return the names of the attached months."""
        rows = self.run(
            "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass", parent
        )
        return {row[0] for row in rows} - {f"{parent}_default"}

    def has(self, parent: str, months_ago: int) -> bool:
        return self.name(parent, months_ago) in self.attached(parent)

    def exists(self, parent: str, months_ago: int) -> bool:
        """Return whether the table of the month exists, attached or not."""
        return self.run("select to_regclass(%s) is not null", self.name(parent, months_ago)) == [(True,)]

    def shape(self, parent: str, months_ago: int) -> list[Any]:
        """Return columns, constraints and indexes of a month, without the month in their names.

        Indexes have no names here: a revision may have named those of the months that there were.
        """
        name = self.name(parent, months_ago)
        rows = self.run(
            """select attname, format_type(atttypid, atttypmod), attnotnull::text, pg_get_expr(adbin, adrelid)
               from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
               where attrelid = %s::regclass and attnum > 0
               union all
               select conname, contype::text, conislocal::text || coninhcount, pg_get_constraintdef(oid)
               from pg_constraint where conrelid = %s::regclass
               union all
               select replace(pg_get_indexdef(indexrelid), indexrelid::regclass::text, '(name)'), indisunique::text,
                      indisprimary::text || indisvalid, ''
               from pg_index where indrelid = %s::regclass order by 1, 2""",
            *[name] * 3,
        )
        return [tuple(str(cell).replace(name, parent) for cell in row) for row in rows]


def partition_metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"mizan_partitions_{name}", labels) or 0
