"""Browsers show no messages of their own: they speak the browser's language, and pages speak the person's.

The server checks every field and answers in the language of the page, so forms with fields have `novalidate`.
"""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent.parent
TEMPLATES = sorted(
    path
    for folder in ("services", "shared/console", "examples/shop")
    for path in (PROJECT / folder).rglob("templates/**/*.html")
)
FORM = re.compile(r"(<form\b(?:\{\{.*?\}\}|\{%.*?%\}|[^>])*>)(.*?)</form>", re.DOTALL)
FIELD = re.compile(
    r'\b(field|text_field|credential_field|select|secret)\(|<select|<textarea|<input(?![^>]*type="hidden")'
)


def test_forms_are_found() -> None:
    assert sum(len(FORM.findall(path.read_text())) for path in TEMPLATES) > 40


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_form_with_fields_leaves_validation_to_the_server(path: Path) -> None:
    for tag, content in FORM.findall(path.read_text()):
        if FIELD.search(content):
            assert re.search(r"\bnovalidate\b", tag), tag
