"""The KMS is away, slow, refuses or answers nonsense; tokens, certificates and the start of a process."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from shared.platform.encryption import DecryptionError, KeysUnavailableError
from shared.platform.keys import check_keys, open_keys
from shared.platform.keys.transit_client import TransitClient
from shared.platform.settings import KeyPurpose, Settings
from tests.shared.platform.keys.conftest import CONTEXT, LOCAL, NAME, PROVIDERS, WEBHOOKS, Clock, MakeBox
from tests.transit_server import TOKEN, RawAnswer, TransitServer
from tests.waiting import eventually
from tests.webhooks.certificates import Authority


@pytest.mark.usefixtures("no_pause")
def test_what_is_in_memory_goes_on_working_while_the_kms_is_away(
    make_box: MakeBox, kms: TransitServer
) -> None:
    """For its time. What is not in memory is refused, and works again when the KMS is back."""
    elsewhere = make_box().encrypt("other", CONTEXT)
    clock = Clock()
    box = make_box(clock)
    text = box.encrypt("x", CONTEXT)
    kms.is_away = True
    clock.now = 49.0
    assert box.decrypt(text, CONTEXT) == "x"
    assert box.decrypt(box.encrypt("y", CONTEXT), CONTEXT) == "y"
    with pytest.raises(KeysUnavailableError, match="does not answer"):
        box.decrypt(elsewhere, CONTEXT)
    clock.now = 100.0
    with pytest.raises(KeysUnavailableError):
        box.decrypt(text, CONTEXT)
    with pytest.raises(KeysUnavailableError):
        box.encrypt("z", CONTEXT)
    kms.is_away = False
    assert box.decrypt(elsewhere, CONTEXT) == "other"
    assert box.decrypt(text, CONTEXT) == "x"


@pytest.mark.usefixtures("no_pause")
def test_key_in_use_is_renewed_in_the_background(make_box: MakeBox, kms: TransitServer) -> None:
    """After half of its time. So nobody waits for the KMS, and an outage shorter than the other half is not noticed."""
    clock = Clock()
    text = make_box().encrypt("x", CONTEXT)
    box = make_box(clock)
    box.decrypt(text, CONTEXT)
    kms.is_away = True
    clock.now = 60.0
    assert box.decrypt(text, CONTEXT) == "x"
    eventually(lambda: kms.count("decrypt") == 2)
    kms.is_away = False

    def is_renewed() -> bool:
        """It is still there after its first time has passed."""
        clock.now = 60.0
        box.decrypt(text, CONTEXT)
        clock.now = 110.0
        kms.is_away = True
        try:
            return box.decrypt(text, CONTEXT) == "x"
        except KeysUnavailableError:
            return False
        finally:
            kms.is_away = False

    eventually(is_renewed)


def test_outage_is_seen_once_by_a_batch_of_texts(make_box: MakeBox, kms: TransitServer) -> None:
    """The next calls fail at once, for a second: each would wait for its time limit."""
    texts = [make_box().encrypt("x", CONTEXT) for _ in range(5)]
    kms.is_away = True
    kms.calls.clear()
    box = make_box()
    for text in texts:
        with pytest.raises(KeysUnavailableError):
            box.decrypt(text, CONTEXT)
    # requests repeats nothing by itself.
    assert len(kms.calls) == 1


def _metric(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, {"key": NAME, **labels}) or 0.0


@pytest.mark.usefixtures("no_pause")
def test_outage_is_shown_by_metrics_until_the_kms_answers_again(
    make_box: MakeBox, kms: TransitServer
) -> None:
    """For each operation by itself: a token may have the right to decrypt, and none to make data keys."""
    text = make_box().encrypt("x", CONTEXT)

    def counts() -> list[float]:
        outcomes = ("ok", "unavailable", "refused")
        return [_metric("mizan_kms_requests_total", operation="decrypt", outcome=each) for each in outcomes]

    def decrypt(raised: type[Exception] | None = None) -> None:
        with pytest.raises(raised) if raised else nullcontext():
            make_box().decrypt(text, CONTEXT)

    def failing(operation: str) -> float:
        return _metric("mizan_kms_failing", operation=operation)

    ok, unavailable, refused = counts()
    kms.is_away = True
    decrypt(KeysUnavailableError)
    assert counts() == [ok, unavailable + 1, refused]
    assert (failing("decrypt"), failing("datakey")) == (1, 0)
    kms.is_away, kms.answer = False, RawAnswer(200, _data(plaintext="AAAA"))
    decrypt(KeysUnavailableError)
    assert counts() == [ok, unavailable + 2, refused]
    kms.answer = RawAnswer(400, b'{"errors": ["cipher: message authentication failed"]}')
    decrypt(DecryptionError)
    assert counts() == [ok, unavailable + 2, refused + 1]
    assert failing("decrypt") == 0, "it answers"
    kms.answer = None
    decrypt()
    assert counts() == [ok + 1, unavailable + 2, refused + 1]
    assert failing("decrypt") == 0


def _data(**data: object) -> bytes:
    return json.dumps({"data": data}).encode()


_GOOD_KEY = base64.b64encode(bytes(32)).decode()
_GOOD_WRAPPED = "vault:v1:" + "A" * 40


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RawAnswer(503, b'{"errors": ["Vault is sealed"]}'), "answered 503"),
        (RawAnswer(500, b"<html>"), "without JSON"),
        (RawAnswer(429, b""), "answered 429"),
        (RawAnswer(403, b'{"errors": ["permission denied"]}'), "refuses the token of TRANSIT_TOKEN_FILE"),
        (RawAnswer(404, b'{"errors": []}'), "does the key exist"),
        (RawAnswer(400, b'{"errors": ["encryption key not found"]}'), "does the key exist"),
        (RawAnswer(302, b"", {"Location": "http://127.0.0.1:1/"}), "answered 302"),
        (RawAnswer(200, b""), "without data"),
        (RawAnswer(200, b"[]"), "without JSON"),
        (RawAnswer(200, b'{"data": []}'), "without data"),
        (RawAnswer(200, b"[" * 20_000), "without JSON"),
        (RawAnswer(200, b" " * 200_000), "too much"),
        (RawAnswer(200, _data(ciphertext=_GOOD_WRAPPED)), "without a key of 256 bits"),
        (RawAnswer(200, _data(plaintext="AAAA", ciphertext=_GOOD_WRAPPED)), "without a key of 256 bits"),
        (RawAnswer(200, _data(plaintext="!", ciphertext=_GOOD_WRAPPED)), "without a key of 256 bits"),
        (RawAnswer(200, _data(plaintext=_GOOD_KEY)), "without a wrapped key"),
        (
            RawAnswer(200, _data(plaintext=_GOOD_KEY, ciphertext="vault:v0:" + "A" * 40)),
            "without a wrapped key",
        ),
        (
            RawAnswer(200, _data(plaintext=_GOOD_KEY, ciphertext="vault:v1:" + "A" * 9000)),
            "without a wrapped key",
        ),
        (RawAnswer(200, _data(plaintext=_GOOD_KEY, ciphertext=["x"])), "without a wrapped key"),
        (RawAnswer(200, b"{}", {"Content-Length": "9"}), "does not answer"),
        (RawAnswer(200, b"{}", {"Content-Encoding": "gzip"}), "does not answer"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_answer_is_an_outage_with_a_clear_text(
    make_box: MakeBox, kms: TransitServer, answer: RawAnswer, words: str
) -> None:
    """Nothing is encrypted, nothing is lost, and no secret is in the text."""
    kms.answer = answer
    box = make_box()
    with pytest.raises(KeysUnavailableError, match=words) as caught:
        box.encrypt("whsec_1", CONTEXT)
    assert not any(secret in str(caught.value) for secret in (TOKEN, "whsec_1", _GOOD_KEY))
    kms.answer = None
    assert box.decrypt(box.encrypt("x", CONTEXT), CONTEXT) == "x"


def test_answer_that_never_ends_is_given_up(make_box: MakeBox, kms: TransitServer) -> None:
    """Byte by byte, so that the time limit of the socket starts again each time."""
    kms.stalls.set()
    with pytest.raises(KeysUnavailableError, match=r"did not answer within 0\.3 s"):
        make_box(timeout_s=0.3).encrypt("x", CONTEXT)


@pytest.mark.usefixtures("no_pause")
def test_token_is_read_again_for_each_call(make_box: MakeBox, kms: TransitServer, tmp_path: Path) -> None:
    """An agent may renew it, or write it later."""
    file = tmp_path / "transit_token"
    box = make_box()
    for text, words in [
        ("hvs.expired", "refuses the token"),
        ("", "holds no token"),
        ("a\nb", "holds no token"),
    ]:
        file.write_text(text)
        with pytest.raises(KeysUnavailableError, match=words) as caught:
            box.encrypt("x", CONTEXT)
        assert "hvs." not in str(caught.value)
    file.unlink()
    with pytest.raises(KeysUnavailableError, match="TRANSIT_TOKEN_FILE cannot be read"):
        box.encrypt("x", CONTEXT)
    assert kms.count("datakey") == 1
    file.write_text(f"{TOKEN}\n")
    assert box.encrypt("x", CONTEXT)


def test_webhook_service_needs_only_the_right_to_decrypt(
    settings: Settings, kms: TransitServer, tmp_path: Path
) -> None:
    """With a token of its own for its purpose."""
    encrypted = open_keys(settings).open_box(WEBHOOKS).encrypt("x", CONTEXT)
    foreign = open_keys(settings).open_box(PROVIDERS).encrypt("x", CONTEXT)
    kms.tokens["hvs.webhooks"] = ["/v1/auth/token/lookup-self", f"/v1/transit/decrypt/{NAME}"]
    (tmp_path / "transit_token").write_text("hvs.webhooks")
    check_keys("webhooks", settings)
    keys = open_keys(settings)
    assert keys.open_box(WEBHOOKS).decrypt(encrypted, CONTEXT) == "x"
    with pytest.raises(KeysUnavailableError, match="refuses the token"):
        keys.open_box(PROVIDERS).decrypt(foreign, CONTEXT)


def test_start_waits_for_the_kms(settings: Settings, kms: TransitServer) -> None:
    assert settings.transit is not None
    kms.is_away = True
    patient = replace(settings, transit=replace(settings.transit, start_s=60.0))
    with ThreadPoolExecutor(1) as threads:
        started = threads.submit(check_keys, "webhooks", patient)
        eventually(lambda: len(kms.calls) >= 1)
        kms.is_away = False
        started.result()


@pytest.mark.parametrize("process", ["webhooks", "checkout-verifier", "checkout", "dashboard"])
def test_start_without_the_kms_fails_with_a_clear_text(
    settings: Settings, kms: TransitServer, process: str
) -> None:
    kms.is_away = True
    sessions = replace(settings, keys={KeyPurpose.SESSIONS: (LOCAL,)})
    with pytest.raises(KeysUnavailableError, match="the KMS does not answer"):
        check_keys(process, sessions)


def test_certificate_of_the_kms_is_checked(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with TransitServer(authority.receiver("127.0.0.1")).running() as kms:
        TransitClient(kms.settings(tmp_path, ca_file=authority.ca_file, timeout_s=5.0)).check()
        with pytest.raises(KeysUnavailableError, match="SSLError"):
            TransitClient(kms.settings(tmp_path, timeout_s=5.0)).check()
