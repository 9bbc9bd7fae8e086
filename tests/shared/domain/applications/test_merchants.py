"""Which merchant a new application goes to."""

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from shared.domain.applications.errors import MerchantAmbiguousError, MerchantNotFoundError
from tests.shared.domain.applications.conftest import Create, Rows


def test_a_merchant_of_that_name_is_used_or_made(create: Create, rows: Rows) -> None:
    """Two applications of one merchant."""
    first = create("shop", "Tripoli Coffee")
    again = create("second shop", "Tripoli Coffee")
    assert first.merchant_id == again.merchant_id
    assert rows("select name from merchants") == [("Tripoli Coffee",)]


def test_without_a_name_it_is_a_new_merchant(create: Create, rows: Rows) -> None:
    """Named like the application; a namesake, who is somebody else, gets a merchant of their own."""
    assert create("shop").merchant_id != create("shop").merchant_id
    assert rows("select name from merchants") == [("shop",), ("shop",)]


def test_a_merchant_is_found_by_its_id(create: Create, rows: Rows) -> None:
    """No merchant is made for an id that nobody has."""
    first = create("shop")
    assert create("second", first.merchant_id).merchant_id == first.merchant_id
    unknown = uuid4()
    with pytest.raises(MerchantNotFoundError, match=str(unknown)):
        create("third", unknown)
    assert rows("select name from merchants") == [("shop",)]


def test_a_name_that_several_have_is_not_guessed(create: Create, rows: Rows) -> None:
    """The error lists the ids to choose from, and nothing is made."""
    ids = [row[0] for row in rows("insert into merchants (name) values ('twin'), ('twin') returning id")]
    with pytest.raises(MerchantAmbiguousError, match="2 merchants") as caught:
        create("shop", "twin")
    assert all(str(merchant_id) in str(caught.value) for merchant_id in ids)
    assert rows("select count(*) from applications") == [(0,)]
    assert create("shop", ids[1]).merchant_id == ids[1]


def test_creates_at_one_moment_make_one_merchant(create: Create, rows: Rows) -> None:
    """Many applications of one new merchant, and another merchant's between them."""
    names = ["Tripoli Coffee", "Benghazi Tea"] * 12
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda job: create(f"shop {job[0]}", job[1]), enumerate(names)))
    assert len({application.id for application in made}) == 24
    assert sorted(rows("select name from merchants")) == [("Benghazi Tea",), ("Tripoli Coffee",)]
