"""The enabled payment methods of an application."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from services.dashboard.applications.queries import set_methods
from shared.domain.applications.errors import ApplicationNotFoundError, NoMethodsError
from shared.domain.payment_methods import PaymentMethod
from shared.platform.database.pool import Database
from tests.shared.domain.applications.conftest import Create, Rows

CARD, SADAD, ADFALI = PaymentMethod


def test_setting_methods_replaces_all_of_them(database: Database, create: Create, rows: Rows) -> None:
    """Those of other applications stay."""
    mine, other = create("a"), create("b")
    for methods, changes in [({CARD}, True), ({CARD}, False), ({SADAD, ADFALI}, True)]:
        with database.transaction() as connection:
            assert (set_methods(connection, mine.id, methods) is not None) is changes
        found = rows("select method from application_methods where application_id = %s", mine.id)
        assert {row[0] for row in found} == methods
    assert len(rows("select from application_methods where application_id = %s", other.id)) == 3


def test_application_keeps_at_least_one_method(database: Database, create: Create, rows: Rows) -> None:
    made = create()
    with pytest.raises(NoMethodsError), database.transaction() as connection:
        set_methods(connection, made.id, set())
    assert len(rows("select from application_methods")) == 3


def test_unknown_application_is_an_error(database: Database) -> None:
    unknown = uuid4()
    with (
        pytest.raises(ApplicationNotFoundError, match=str(unknown)),
        database.transaction() as connection,
    ):
        set_methods(connection, unknown, {CARD})


def test_concurrent_changes_of_methods_are_never_mixed(
    database: Database, create: Create, rows: Rows
) -> None:
    """One of the two requests is stored as a whole."""
    made = create()
    requests = [{CARD}, {SADAD, ADFALI}]

    def choose(number: int) -> None:
        with database.transaction() as connection:
            set_methods(connection, made.id, requests[number % 2])

    for _ in range(5):
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(choose, range(12)))
        assert {row[0] for row in rows("select method from application_methods")} in requests
