"""Every example and command of the guides is tested."""

from tests.merchants.document import COMMANDS, FILES
from tests.merchants.languages import LANGUAGES


def test_every_file_and_command_of_the_document_is_tested() -> None:
    shops = {language.file for language in LANGUAGES}
    assert set(FILES) == shops | {"create.sh", "retrieve.sh", "verify.sh"}
    assert set(COMMANDS) == {language.name for language in LANGUAGES}
