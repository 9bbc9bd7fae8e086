"""SQL text is built when a module is imported, from constants only. Values are always parameters of a statement.

This rule replaces ruff's S608. A function that returns SQL is named `…_sql`, and is also called only at import time.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
IS_SQL = re.compile(r"\b(select|insert into|update|delete from|order by|where)\b")


def lines_that_build_sql(source: str) -> Iterator[int]:
    """Yield the lines of `source` that build SQL inside a function."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        if function.name.endswith("_sql"):
            continue
        for node in ast.walk(function):
            match node:
                case ast.JoinedStr() if _is_sql(node):
                    yield node.lineno
                case ast.Call(func=ast.Name(name)) if name.endswith("_sql"):
                    yield node.lineno


def _is_sql(node: ast.JoinedStr) -> bool:
    """Our SQL spans several lines, messages for people do not."""
    text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    return "\n" in text and IS_SQL.search(text) is not None


@pytest.mark.parametrize("package", ["mizan", "services", "shared", "stack"])
def test_no_function_builds_sql_from_values(package: str) -> None:
    found = [
        f"{path.relative_to(PROJECT)}:{line}"
        for path in sorted((PROJECT / package).rglob("*.py"))
        for line in lines_that_build_sql(path.read_text())
    ]
    assert found == []


def test_checker_finds_sql_built_from_values() -> None:
    source = 'def find(name):\n    run(f"""\nselect 1 where name = {name}""")\n    run(rows_sql(name))\n'
    assert list(lines_that_build_sql(source)) == [2, 4]
