"""Tests run every file of docs/merchants.md."""

from tests.merchants.document import COMMANDS, FILES
from tests.merchants.languages import LANGUAGES


def test_all_files_and_commands_are_run_by_tests() -> None:
    shops = {file for language in LANGUAGES for file in language.files}
    assert set(FILES) == shops | {"create.sh", "retrieve.sh", "verify.sh"}
    assert set(COMMANDS) == {language.name for language in LANGUAGES}
