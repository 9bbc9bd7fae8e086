"""For statements that need one good plan from an empty to a huge table, with fresh, stale or no statistics.

PostgreSQL plans by what it knows of a table's size. Here tables start empty every month and grow by thousands of rows a
second, so it often knows the wrong thing: it scans a whole table that was empty when it was analyzed last, or sorts a
million rows to return ten. There are three remedies, from the general to the particular:

- `STABLE_PLANS`: settings of a whole connection pool, for processes that run the same few statements all the time.
- `read_in_index_order()`: settings of one transaction, for single lists and counts.
- Batches by arrays instead of joins: `key_array()`, `among_keys_sql()` and `element_sql()`.

The tests marked `plans` check statements on empty, small and huge tables; docs/decisions/0010-webhooks.md has figures.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import lt
from types import MappingProxyType
from typing import Any

from psycopg import Connection, Cursor

from shared.platform.database.pool import Database

STABLE_PLANS: Mapping[str, str] = MappingProxyType(
    {
        # All rows are found by an index, in its order. A bitmap scan would first collect all rows that match.
        "enable_seqscan": "off",
        "enable_bitmapscan": "off",
        # Plan a statement without its values: planning anew for each call costs as much as running it.
        "plan_cache_mode": "force_generic_plan",
    }
)
"""Settings for a pool whose statements all find rows by index: `Database(settings, service, **STABLE_PLANS)`.

API, checkout, scheduler and webhooks use them: processes that run the same few statements all the time. The settings
belong to the connection, because they must hold whenever a statement runs: PostgreSQL plans a prepared statement (API,
checkout, webhooks) again after every `analyze` of its tables, and reads plan_cache_mode at every execution. `set local`
would cost three more round trips (begin, set, commit) where there is one now. Dashboard and monitor prepare nothing,
and use `read_in_index_order()`.
"""

INDEX_ORDER: Mapping[str, str] = MappingProxyType(
    {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off"}
)
"""The settings of `read_in_index_order()`, for tests that explain statements."""
_SET_INDEX_ORDER = "; ".join([f"set local {name} = {value}" for name, value in INDEX_ORDER.items()]).encode()

_NEED_QUOTES = b'{}"\\ \t\n\r\v\f'


@contextmanager
def in_index_order(database: Database) -> Iterator[Cursor[Any]]:
    """Open a transaction in which `read_in_index_order` holds."""
    with database.transaction() as connection:
        yield read_in_index_order(connection)


def read_in_index_order(connection: Connection[Any]) -> Cursor[Any]:
    """Make PostgreSQL find rows by an index, in its order, until the transaction ends. Returns a cursor.

    For finding or counting the first few rows of a table that grows. If PostgreSQL believes that the table is short, or
    that almost any row will do, it would read all of it, and sort it.
    """
    return connection.execute(_SET_INDEX_ORDER)


def key_array(keys: Sequence[str]) -> bytes:
    """Return PostgreSQL's text of an array of the keys of a batch, for `among_keys_sql()` and `element_sql()`.

    The keys must be sorted and unique: otherwise rows would silently get the values of other rows.
    """
    assert all(map(lt, keys, keys[1:])), "keys must be sorted and unique"
    return text_array(keys)


def text_array(values: Iterable[str | None]) -> bytes:
    """Return PostgreSQL's text of an array of values that need no quotes: ids, numbers, single words."""
    texts = ["NULL" if value is None else value for value in values]
    array = ",".join(texts).encode()
    # Checked without a loop in Python, because this is the hot path.
    assert array.count(b",") == max(len(texts) - 1, 0), "a value contains a comma"
    assert len(array.translate(None, _NEED_QUOTES)) == len(array), "a value needs quotes"
    assert "" not in texts, "an empty value needs quotes"
    return b"{%b}" % array


def quoted_array(values: Iterable[str | None]) -> bytes:
    """Return PostgreSQL's text of an array of any values."""
    texts = [
        "NULL" if value is None else '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'
        for value in values
    ]
    return f"{{{','.join(texts)}}}".encode()


def bytea_array(values: Iterable[bytes]) -> bytes:
    """Return PostgreSQL's text of an array of bytea."""
    hexadecimal = ['"\\\\x' + value.hex() + '"' for value in values]
    return f"{{{','.join(hexadecimal)}}}".encode()


def among_keys_sql(key: str = "id", keys: str = "$1::uuid[]") -> str:
    """Return SQL for the condition that `key` is one of `keys`, an array made by `key_array()`.

    It names the first and last of them, too: by a range PostgreSQL leaves out the partitions of other months before it
    runs the statement, and by `= any` alone it searches all of them.
    """
    return f"{key} >= ({keys})[1] and {key} <= ({keys})[cardinality({keys})] and {key} = any({keys})"


def element_sql(array: str, key: str = "id", keys: str = "$1::uuid[]") -> str:
    """Return SQL for the element of `array` that belongs to `key`.

    A batch comes as several arrays: the keys, made by `key_array()`, and the values of each key at the same position. A
    statement finds its rows by `among_keys_sql()`, and each row looks up its own values:

        update t set status = {element_sql("$2::text[]")} where {among_keys_sql()}

    A join with unnest() would do the same, but can be planned badly. This has one plan, and locks rows in order of id.
    """
    return f"({array})[{position_sql(key, keys)}]"


def position_sql(key: str = "id", keys: str = "$1::uuid[]") -> str:
    """Return SQL for the position of `key` in `keys`, counted from 1.

    width_bucket() is meant for histograms: it returns the number of thresholds that are not above a value, by binary
    search. If the thresholds are sorted and unique and the value is one of them, that is its position.
    """
    return f"width_bucket({key}, {keys})"
