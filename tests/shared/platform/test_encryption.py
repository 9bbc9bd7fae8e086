"""Secrets are encrypted with the keys of the installation and bound to a purpose."""

import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest
from cryptography.fernet import Fernet

from shared.platform.encryption import (
    DecryptionError,
    NoSecretKeysError,
    SecretBox,
    WrongPurposeError,
)

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
PURPOSE = "webhook_secret/shop/1"


@pytest.mark.parametrize("text", ["whsec_hush", "", "سرّ", 'quotes " and \\ and \x00'])
def test_encrypted_text_can_be_decrypted(text: str) -> None:
    """Any text is returned unchanged."""
    box = SecretBox((NEW,))
    assert box.decrypt(box.encrypt(text, PURPOSE), PURPOSE) == text


def test_encrypted_text_reveals_nothing() -> None:
    """Neither the secret nor its purpose, and no two ciphertexts are equal."""
    box = SecretBox((NEW,))
    first, second = box.encrypt("whsec_hush", PURPOSE), box.encrypt("whsec_hush", PURPOSE)
    assert first != second
    assert "hush" not in first
    assert "shop" not in first
    assert NEW not in repr(box)


def test_keys_can_be_rotated() -> None:
    """A new first key encrypts from then on; texts encrypted with the old key can still be decrypted."""
    encrypted_before = SecretBox((OLD,)).encrypt("before", PURPOSE)
    both = SecretBox((NEW, OLD))
    assert both.decrypt(encrypted_before, PURPOSE) == "before"
    assert SecretBox((NEW,)).decrypt(both.encrypt("after", PURPOSE), PURPOSE) == "after"


def test_ciphertext_moved_to_another_row_is_refused() -> None:
    """Write access to the database is not enough to sign for one application with another's secret."""
    box = SecretBox((NEW,))
    encrypted = box.encrypt("whsec_hush", PURPOSE)
    with pytest.raises(WrongPurposeError) as caught:
        box.decrypt(encrypted, "webhook_secret/other/1")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: SecretBox((OLD,)).encrypt("x", PURPOSE),  # another installation's key
        lambda sealed: sealed[:-6] + "AAAA==",  # modified
        lambda sealed: sealed[:20],  # truncated
        lambda _: "سرّ",  # never encrypted
        lambda _: "",
    ],
)
def test_decryption_error_names_the_secret_and_the_setting(spoil: Callable[[str], str]) -> None:
    box = SecretBox((NEW,))
    with pytest.raises(DecryptionError, match=f"{PURPOSE} .* MIZAN_SECRET_KEYS"):
        box.decrypt(spoil(box.encrypt("x", PURPOSE)), PURPOSE)


def test_error_without_a_key_names_the_command_that_creates_one() -> None:
    """The key that this command prints works."""
    with pytest.raises(NoSecretKeysError, match="MIZAN_SECRET_KEYS") as caught:
        SecretBox(())
    _, _, command = str(caught.value).rpartition("Make one with ")
    mizan, *arguments = shlex.split(command.strip("`"))
    made = subprocess.run(
        [sys.executable, "-m", mizan, *arguments], capture_output=True, text=True, check=True
    )
    assert SecretBox((made.stdout.strip(),)).encrypt("x", PURPOSE)
