"""The merchant of a new application."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from shared.domain.applications.errors import MerchantAmbiguousError, MerchantNotFoundError
from tests.shared.domain.applications.conftest import Create, Rows


def test_merchant_of_that_name_is_reused_or_created(create: Create, rows: Rows) -> None:
    first = create("shop", "Tripoli Coffee")
    again = create("second shop", "Tripoli Coffee")
    assert first.merchant_id == again.merchant_id
    assert rows("select name from merchants") == [("Tripoli Coffee",)]


def test_application_without_a_merchant_gets_a_new_one(create: Create, rows: Rows) -> None:
    """It is named like the application. A second application of that name gets another merchant."""
    assert create("shop").merchant_id != create("shop").merchant_id
    assert rows("select name from merchants") == [("shop",), ("shop",)]


def test_merchant_is_found_by_its_id(create: Create, rows: Rows) -> None:
    """An unknown id creates no merchant."""
    first = create("shop")
    assert create("second", first.merchant_id).merchant_id == first.merchant_id
    unknown = uuid4()
    with pytest.raises(MerchantNotFoundError, match=str(unknown)):
        create("third", unknown)
    assert rows("select name from merchants") == [("shop",)]


def test_ambiguous_merchant_name_is_refused(create: Create, rows: Rows) -> None:
    """The error lists the ids to choose from, and nothing is created."""
    ids = [row[0] for row in rows("insert into merchants (name) values ('twin'), ('twin') returning id")]
    with pytest.raises(MerchantAmbiguousError, match="2 merchants") as caught:
        create("shop", "twin")
    assert all(str(merchant_id) in str(caught.value) for merchant_id in ids)
    assert rows("select count(*) from applications") == [(0,)]
    assert create("shop", ids[1]).merchant_id == ids[1]


def test_concurrent_creates_make_one_merchant_per_name(create: Create, rows: Rows) -> None:
    names = ["Tripoli Coffee", "Benghazi Tea"] * 12
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda job: create(f"shop {job[0]}", job[1]), enumerate(names)))
    assert len({application.id for application in made}) == 24
    assert sorted(rows("select name from merchants")) == [("Benghazi Tea",), ("Tripoli Coffee",)]
