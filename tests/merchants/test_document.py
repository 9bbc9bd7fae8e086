"""docs/merchants.md itself: nothing in it that no test runs, and no link that leads nowhere."""

import re

import pytest

from tests.merchants.document import COMMANDS, DOCUMENT, FILES
from tests.merchants.languages import LANGUAGES

TEXT = DOCUMENT.read_text()


def test_all_code_is_in_files_that_tests_run() -> None:
    shops = {file for language in LANGUAGES for file in language.files}
    assert set(FILES) == shops | {"create.sh", "retrieve.sh", "verify.sh"}
    assert set(COMMANDS) == {language.name for language in LANGUAGES}
    fences = re.findall(r"^```(\w+)$", TEXT, re.MULTILINE)
    assert len(fences) == len(FILES) + 1  # the signature to test with is text
    assert fences.count("text") == 1


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)]+)\)", TEXT))))
def test_links_lead_somewhere(link: str) -> None:
    file, _, anchor = link.partition("#")
    target = (DOCUMENT.parent / file) if file else DOCUMENT
    assert target.exists()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
