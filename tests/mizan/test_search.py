"""`mizan search`: finds payments of all merchants."""

import json

import pytest

from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find
from shared.platform.database.pool import Database
from tests.mizan.conftest import Mizan
from tests.mizan.sample_history import SampleApplication


def test_payments_are_found_in_all_applications(run: Mizan, database: Database) -> None:
    """Newest first, with how far back it looked."""
    uuids = []
    for shop in (SampleApplication(database), SampleApplication(database)):
        with database.cursor() as cursor:
            intent, _ = create_or_find(cursor, NewIntent(shop.application, "order 1042", 25_000, "LYD"))
        uuids.append(str(intent.uuid))
        shop.create()
    answer = run("search", "rder 10", "--json")
    assert answer.exit_code == 0
    found = json.loads(answer.stdout)["payments"]
    assert [row["uuid"] for row in found] == uuids[::-1]
    assert {(row["application"], row["merchant_reference"], row["amount"]) for row in found} == {
        ("shop", "order 1042", 25_000)
    }
    assert "searched everything since 20" in answer.stderr
    text = run("search", uuids[0]).stdout
    assert "merchant_reference" in text
    assert uuids[0] in text
    assert uuids[1] not in text


def test_more_matches_are_on_the_next_page(run: Mizan, database: Database) -> None:
    shop = SampleApplication(database)
    with database.cursor() as cursor:
        for number in range(60):
            create_or_find(cursor, NewIntent(shop.application, f"order {number}", 25_000, "LYD"))
    first = run("search", "order", "--json")
    before = first.stderr.rpartition("--before ")[2].strip()
    second = run("search", "order", "--before", before, "--json")
    rows = [row for answer in (first, second) for row in json.loads(answer.stdout)["payments"]]
    assert [row["merchant_reference"] for row in rows] == [f"order {number}" for number in range(59, -1, -1)]
    assert "there is more" not in second.stderr


def test_nothing_found_is_said(run: Mizan, database: Database) -> None:
    SampleApplication(database).create()
    answer = run("search", "no such order")
    assert (answer.exit_code, answer.stdout) == (0, "nothing found\n")
    assert run("search", "25", "--since", "2199-01-01").stdout == "nothing found\n"


@pytest.mark.parametrize(
    "words", [(" ",), ("x" * 256,), ("order", "--before", "last week"), ("order", "--since", "yesterday")]
)
def test_invalid_search_is_refused(run: Mizan, words: tuple[str, ...]) -> None:
    assert run("search", *words).exit_code == 2
