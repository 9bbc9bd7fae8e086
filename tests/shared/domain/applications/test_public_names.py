"""Names of applications that customers see: what may be in one, and how they are set."""

from uuid import uuid4

import pytest

from shared.domain.applications.errors import ApplicationNotFoundError, InvalidPublicNameError
from shared.domain.applications.public_names import (
    MAX_LENGTH,
    PublicNames,
    check_public_name,
    set_public_names,
)
from shared.platform.database.pool import Database
from tests.shared.domain.applications.conftest import Create

NAMES = PublicNames("متجر القهوة", "Coffee shop")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("  Tripoli \u00a0 Coffee ", "Tripoli Coffee"),
        ("مقهى طرابلس", "مقهى طرابلس"),
        ("مُقَهّىٰ", "مُقَهّىٰ"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("Cafe\u0301 & Co. <b>", "Café & Co. <b>"),
        ("x" * MAX_LENGTH, "x" * MAX_LENGTH),
        ("", None),
        (" \u3000\t ", None),
    ],
    ids=["spaces", "arabic", "marks", "joiner", "markup", "longest", "empty", "blank"],
)
def test_readable_names_are_accepted(text: str, name: str | None) -> None:
    assert check_public_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "x" * (MAX_LENGTH + 1),
        "a\x00b",
        "a\nb",
        "a\x1b[31mb",
        "a\u0085b",
        "a\u2028b",
        "a\u202eb",
        "a\u2066b",
        "a\u2069b",
        "a\u200fb",
        "a\u061cb",
        "a\u200bb",
        "\ufeffa",
        "a\U000e0041",
        "a\ue000",
        "a\ud800",
        "\u200d",
        "...",
        "a" + "\u0300" * 20,
    ],
    ids=lambda text: text[:12].encode("unicode_escape", "surrogatepass").decode(),
)
def test_hostile_names_are_refused(text: str) -> None:
    """Too long, with a control character, a bidi override, an invisible character, or nothing to read."""
    with pytest.raises(InvalidPublicNameError):
        check_public_name(text)


def test_names_are_set_and_removed(database: Database, create: Create) -> None:
    made = create("shop")
    with database.transaction() as connection:
        assert set_public_names(connection, made.id, NAMES) == PublicNames()
        assert set_public_names(connection, made.id, NAMES) is None
        assert set_public_names(connection, made.id, PublicNames(en="Shop")) == NAMES
        with pytest.raises(ApplicationNotFoundError):
            set_public_names(connection, uuid4(), NAMES)
