"""Envelopes with data keys of a KMS: who can decrypt what, the move from local keys and back, rotation."""

import base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from shared.platform.encryption import (
    DecryptionError,
    NoSecretKeysError,
    SecretBox,
    WrongPurposeError,
)
from shared.platform.keys import data_keys as data_keys_module
from shared.platform.keys import open_keys
from shared.platform.keys.envelope import Envelope
from shared.platform.settings import KeyPurpose, Settings
from tests.shared.platform.keys.conftest import CONTEXT, LOCAL, NAME, PROVIDERS, WEBHOOKS, MakeBox
from tests.transit_server import TransitServer


def test_text_is_readable_by_other_processes_and_only_for_its_row(settings: Settings) -> None:
    encrypted = open_keys(settings).open_box(WEBHOOKS).encrypt("whsec_1", CONTEXT)
    other = open_keys(settings).open_box(WEBHOOKS)
    assert other.decrypt(encrypted, CONTEXT) == "whsec_1"
    with pytest.raises(WrongPurposeError):
        other.decrypt(encrypted, "row/2")
    assert "whsec_1" not in encrypted


def test_envelope_says_its_format_its_key_and_its_data_key(settings: Settings) -> None:
    encrypted = open_keys(settings).open_box(WEBHOOKS).encrypt("x", CONTEXT)
    assert encrypted.split(".")[:3] == ["m1", "transit", NAME]
    envelope = Envelope.decode(encrypted)
    assert envelope.wrapped.startswith("vault:v1:")
    assert envelope.encode() == encrypted


def test_text_of_one_purpose_cannot_be_decrypted_for_another(settings: Settings, kms: TransitServer) -> None:
    """The KMS is not even asked: whoever writes to the database must not choose its key."""
    encrypted = open_keys(settings).open_box(WEBHOOKS).encrypt("x", CONTEXT)
    asked = len(kms.calls)
    with pytest.raises(DecryptionError, match="another key of the KMS than mizan-provider-credentials"):
        open_keys(settings).open_box(PROVIDERS).decrypt(encrypted, CONTEXT)
    assert len(kms.calls) == asked
    renamed = encrypted.replace(NAME, "mizan-provider-credentials")
    with pytest.raises(DecryptionError):
        open_keys(settings).open_box(PROVIDERS).decrypt(renamed, CONTEXT)


def _changed(text: str, part: int) -> str:
    parts = text.split(".")
    flipped = "A" if parts[part][20] != "A" else "B"
    parts[part] = parts[part][:20] + flipped + parts[part][21:]
    return ".".join(parts)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: _changed(text, 3),
        lambda text: _changed(text, 4),
        lambda text: text[:-30],
        lambda text: text.replace("m1.", "m2.", 1),
        lambda text: text.replace("transit", "other", 1),
        lambda text: text.rpartition(".")[0] + ".",
        lambda text: text.rpartition(".")[0] + ".%%%",
        lambda text: text.replace(text.split(".")[3], ""),
        lambda text: text.replace(text.split(".")[3], base64.b64encode(b"vault:v1:../../sys/seal").decode()),
        lambda text: text + "." + "A" * 200_000,
        lambda _: "",
    ],
    ids=[
        "wrapped key",
        "text",
        "shortened",
        "format",
        "provider",
        "empty",
        "no base64",
        "no key",
        "path",
        "long",
        "nothing",
    ],
)
def test_changed_envelope_is_not_decrypted(make_box: MakeBox, change: Callable[[str], str]) -> None:
    box = make_box()
    changed = change(box.encrypt("x", CONTEXT))
    with pytest.raises(DecryptionError, match=CONTEXT):
        box.decrypt(changed, CONTEXT)
    assert box.find_key(changed) is None
    assert box.reencrypt(changed) == changed or box.find_key(box.reencrypt(changed)) is None


def test_old_texts_are_read_and_moved_to_the_kms(make_box: MakeBox) -> None:
    """What a local key has encrypted. A second move changes nothing that could not be read before."""
    old = SecretBox((LOCAL,)).encrypt("before", CONTEXT)
    box = make_box(keys=(LOCAL,))
    assert box.key_labels == ["transit", "transit older", "key 1"]
    assert (box.find_key(old), box.decrypt(old, CONTEXT)) == ("key 1", "before")
    moved = box.reencrypt(old)
    assert make_box().find_key(moved) == "transit"
    assert make_box().decrypt(moved, CONTEXT) == "before"
    with pytest.raises(DecryptionError, match="MIZAN_SECRET_KEYS"):
        make_box().decrypt(old, CONTEXT)


def test_texts_move_back_to_local_keys(settings: Settings) -> None:
    """With KEY_PROVIDER=local and TRANSIT_URL still set, the KMS only decrypts."""
    assert settings.transit is not None
    encrypted = open_keys(settings).open_box(WEBHOOKS).encrypt("x", CONTEXT)
    both = replace(settings, keys={WEBHOOKS: (LOCAL,)}, transit=replace(settings.transit, encrypts=False))
    box = open_keys(both).open_box(WEBHOOKS)
    assert box.key_labels == ["key 1", "transit", "transit older"]
    assert SecretBox((LOCAL,)).decrypt(box.reencrypt(encrypted), CONTEXT) == "x"
    with pytest.raises(DecryptionError, match="TRANSIT_URL is not set"):
        SecretBox((LOCAL,)).decrypt(encrypted, CONTEXT)
    with pytest.raises(NoSecretKeysError):
        open_keys(replace(both, keys={})).open_box(WEBHOOKS)


def test_rotation_in_the_kms_wraps_data_keys_again_without_decrypting_texts(
    make_box: MakeBox, kms: TransitServer
) -> None:
    """Texts that share a data key share the call. Afterwards the old version can be disabled."""
    old_box = make_box()
    texts = [old_box.encrypt(str(number), CONTEXT) for number in range(5)]
    kms.keys[NAME].rotate()
    box = make_box()
    assert [box.find_key(text) for text in texts] == ["transit older"] * 5
    kms.calls.clear()
    moved = [box.reencrypt(text) for text in texts]
    assert (kms.count("rewrap"), kms.count("decrypt")) == (1, 0)
    assert [one.rpartition(".")[2] for one in moved] == [one.rpartition(".")[2] for one in texts]
    kms.keys[NAME].min_decryption_version = 2
    assert [make_box().decrypt(text, CONTEXT) for text in moved] == list("01234")
    assert {make_box().find_key(text) for text in moved} == {"transit"}
    assert make_box().find_key(texts[0]) is None
    with pytest.raises(DecryptionError, match="disabled"):
        make_box().decrypt(texts[0], CONTEXT)


def test_many_texts_need_one_call(make_box: MakeBox, kms: TransitServer) -> None:
    """A process that encrypts makes one data key, one that decrypts unwraps it once."""
    box = make_box()
    texts = [box.encrypt(str(number), CONTEXT) for number in range(50)]
    assert [box.decrypt(text, CONTEXT) for text in texts] == [str(number) for number in range(50)]
    assert (kms.count("datakey"), kms.count("decrypt")) == (1, 0)
    other = make_box()
    with ThreadPoolExecutor(20) as threads:
        assert list(threads.map(lambda text: other.decrypt(text, CONTEXT), texts)) == [
            str(number) for number in range(50)
        ]
    assert kms.count("decrypt") == 1


def test_data_key_encrypts_a_limited_number_of_texts(
    make_box: MakeBox, kms: TransitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_keys_module, "MAX_TEXTS", 3)
    box = make_box()
    texts = [box.encrypt("x", CONTEXT) for _ in range(8)]
    # The first use of a key is not counted: it is made for it.
    assert kms.count("datakey") == 2
    assert len({text.split(".")[3] for text in texts}) == 2


def test_memory_holds_a_limited_number_of_data_keys(make_box: MakeBox, kms: TransitServer) -> None:
    texts = [make_box().encrypt("x", CONTEXT) for _ in range(4)]
    box = make_box(cache_size=2)
    for text in texts:
        box.decrypt(text, CONTEXT)
    assert kms.count("decrypt") == 4
    box.decrypt(texts[3], CONTEXT)
    assert kms.count("decrypt") == 4
    box.decrypt(texts[0], CONTEXT)
    assert kms.count("decrypt") == 5


def test_hash_keys_are_the_same_in_all_processes_and_differ_by_purpose(settings: Settings) -> None:
    """Sessions are local: they need a local key."""
    keys = open_keys(settings)
    limits = keys.derive(KeyPurpose.CUSTOMER_DATA, "limits")
    assert (len(limits), open_keys(settings).derive(KeyPurpose.CUSTOMER_DATA, "limits")) == (32, limits)
    assert keys.derive(KeyPurpose.CUSTOMER_DATA, "other") != limits
    assert keys.derive(WEBHOOKS, "limits") != limits
    for call in (lambda: keys.derive(KeyPurpose.SESSIONS, "x"), keys.cookie_keys):
        with pytest.raises(NoSecretKeysError, match="MIZAN_SESSION_KEYS"):
            call()
