"""Every SQL statement that the pages tell an operator to run works on the current schema."""

import re

import pytest

from shared.platform.database.pool import Database
from tests.constants import UNKNOWN_ID
from tests.readme.documents import ROOT, Document

_IN_PROSE = re.compile(r"`(select [^`]+)`")
_PAGES = [Document(path) for path in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/operations/**/*.md"))]
_STATEMENTS = [
    pytest.param(block, id=f"{page.path.stem}-{number}")
    for page in _PAGES
    for number, block in enumerate([*page.code("sql"), *_IN_PROSE.findall(page.text)])
]


@pytest.mark.parametrize("block", _STATEMENTS)
def test_statements_work(block: str, database: Database) -> None:
    """As the owner of the tables. `…` stands for an id."""
    with database.transaction() as connection:
        for statement in block.replace("…", str(UNKNOWN_ID)).split(";"):
            connection.execute(statement.encode())


def test_statements_are_found() -> None:
    assert {"jobs", "upgrades", "tracing"} <= {str(each.id).rpartition("-")[0] for each in _STATEMENTS}
