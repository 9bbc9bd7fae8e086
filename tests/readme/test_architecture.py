"""ARCHITECTURE.md names files and tests that exist."""

import re
from pathlib import Path

PROJECT = Path(__file__).parent.parent.parent
TOP_LEVEL = (
    "bin",
    "clients",
    "docs",
    "examples",
    "mizan",
    "observability",
    "services",
    "shared",
    "stack",
    "tests",
)
NAMED = re.compile(rf"`((?:{'|'.join(TOP_LEVEL)})/[\w./-]+)(?:::(\w+))?`")


def test_every_file_and_test_named_in_architecture_exists() -> None:
    named = NAMED.findall((PROJECT / "ARCHITECTURE.md").read_text())
    assert len(named) > 40
    missing = [path for path, _ in named if not (PROJECT / path).exists()]
    assert missing == []
    unproven = [test for path, test in named if test and f"def {test}(" not in (PROJECT / path).read_text()]
    assert unproven == []
