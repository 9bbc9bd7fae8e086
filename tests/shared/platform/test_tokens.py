"""Keys and tokens that are issued, and what is stored of them."""

import re
from collections.abc import Callable
from hashlib import sha256
from math import log2

import pytest

from shared.platform.redaction import redact_text
from shared.platform.tokens import hash_token, new_access_token, new_api_key, new_webhook_secret, token_prefix

KINDS = [
    (lambda: new_api_key("test"), "pk_test_"),
    (lambda: new_api_key("live"), "pk_live_"),
    (new_access_token, "at_"),
    (new_webhook_secret, "whsec_"),
]


@pytest.mark.parametrize(("make", "beginning"), KINDS)
def test_token_has_the_prefix_of_its_kind_and_enough_randomness(
    make: Callable[[], str], beginning: str
) -> None:
    """§1, §5: pk_…, whsec_…; then letters and digits with at least 190 bits."""
    issued = [make() for _ in range(500)]
    random_parts = [text.removeprefix(beginning) for text in issued]
    assert len(set(issued)) == 500
    assert all(re.fullmatch(rf"{beginning}[A-Za-z0-9]+", text) for text in issued)
    alphabet = set("".join(random_parts))
    assert min(map(len, random_parts)) * log2(len(alphabet)) >= 190


@pytest.mark.parametrize(("make", "_beginning"), KINDS)
def test_token_is_redacted_in_logs(make: Callable[[], str], _beginning: str) -> None:
    """Redaction knows these formats, also without a sensitive name before them."""
    text = make()
    assert text not in redact_text(f"refused {text} from a merchant")


def test_hash_is_the_sha_256_of_the_token() -> None:
    """So that every later version finds the rows stored today; any text can be hashed."""
    assert hash_token("pk_x").hex() == "8af88aab766ac12a33abf1af0006889ceb574e295e16dfd2e78b93ba282baec6"
    assert hash_token("مفتاح") == sha256("مفتاح".encode()).digest()


def test_stored_prefix_is_short() -> None:
    """People recognise credentials by it; nearly all of the random part stays unknown."""
    assert token_prefix("pk_live_abcdefghijkl") == "pk_live_abcdef"
    assert token_prefix("at_abcdefghijkl") == "at_abcdef"
    assert token_prefix("pk_abcdefghijkl") == "pk_abcdef"  # issued before there were modes
