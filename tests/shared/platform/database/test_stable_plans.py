"""Planner settings of pools and transactions, and array parameters of batches."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Cursor

from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.database.prepared_statements import PreparedStatement
from shared.platform.database.stable_plans import (
    INDEX_ORDER,
    STABLE_PLANS,
    bytea_array,
    element_sql,
    in_index_order,
    key_array,
    position_sql,
    quoted_array,
    text_array,
)
from shared.platform.settings import DatabaseSettings

LOOK_UP = PreparedStatement(
    f"""select id, {position_sql()}, {element_sql("$2::text[]")}, {element_sql("$3::bytea[]")}
        from unnest($1::uuid[]) as id"""
)


def test_each_key_gets_its_own_values(database: Database) -> None:
    """Also null, and bytes that would need quotes."""
    keys = sorted(str(uuid4()) for _ in range(100))
    words = [None if number % 7 == 0 else f"word-{number}" for number in range(100)]
    contents = [bytes([number]) + b'",{}\\' for number in range(100)]
    with database.cursor() as cursor:
        rows = LOOK_UP.fetch_all(cursor, [key_array(keys), text_array(words), bytea_array(contents)])
    assert [
        (str(UUID(key.decode())), int(position), word and word.decode(), bytes.fromhex(content[2:].decode()))
        for key, position, word, content in rows
        if key is not None and position is not None and content is not None
    ] == [(key, number + 1, words[number], contents[number]) for number, key in enumerate(keys)]


@pytest.mark.parametrize("keys", [["b", "a"], ["a", "a"], ["a", "c", "b"]])
def test_keys_that_are_not_sorted_and_unique_are_refused(keys: list[str]) -> None:
    """PostgreSQL would return values of other keys, without an error."""
    with pytest.raises(AssertionError, match="sorted and unique"):
        key_array(keys)


@pytest.mark.parametrize("value", ["a,b", 'a"', "{a", "a}", "a\\", "a b", "a\n", ""])
def test_values_that_need_quotes_are_refused(value: str) -> None:
    """They would become several elements, or none."""
    for values in ([value], ["x", value], [value, "x"]):
        with pytest.raises(AssertionError):
            text_array(values)


def test_quoted_arrays_hold_any_values(database: Database) -> None:
    """Quotes, backslashes, commas, spaces, empty text, and the word NULL beside null."""
    values = ['"', "\\", '\\"', "a,b", "{}", " a\n", "", "NULL", None, "مرحبا", "\\\\"]
    with database.cursor() as cursor:
        rows = PreparedStatement("select unnest($1::text[])").fetch_all(cursor, [quoted_array(values)])
    assert [None if value is None else value.decode() for (value,) in rows] == values


def test_arrays_may_be_empty(database: Database) -> None:
    with database.cursor() as cursor:
        assert LOOK_UP.fetch_all(cursor, [key_array([]), text_array([]), bytea_array([])]) == []


def test_settings_of_a_pool_apply_to_every_statement(database_settings: DatabaseSettings) -> None:
    database = Database(database_settings, "test", **STABLE_PLANS)
    with database.cursor() as cursor, database.transaction() as connection:
        for source in (cursor, connection.cursor()):
            assert settings_of(source, STABLE_PLANS) == dict(STABLE_PLANS)
    database.close()


def test_settings_of_a_transaction_end_with_it(database: Database) -> None:
    for _ in range(2):
        with in_index_order(database) as cursor:
            assert settings_of(cursor, INDEX_ORDER) == dict(INDEX_ORDER)
        with database.cursor() as cursor:
            assert set(settings_of(cursor, INDEX_ORDER).values()) == {"on"}


def settings_of(cursor: Cursor[Any], names: Iterable[str]) -> dict[str, str]:
    return {name: fetch_scalar(cursor, "select current_setting(%s)", (name,)) for name in names}
