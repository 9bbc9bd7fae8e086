"""`mizan sign` and `mizan verify` (§6.4), without a database and without a stack."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mizan.__main__ import main
from shared.domain.deliveries.signing import build_body

BODY = build_body(
    "019b3c62-0e4b-7d15-8a36-c2f7915be0d8", "payment_intent.succeeded", "019b3c5e-6f1a-7c40-9d27-5b8e0c4a1f63"
)
SECRET = "whsec_example"
SIGNATURE = "995bb2032403a6ad523334fe539d60ebc87685ff1cb45f5ac42d863b1782e1cf"
"""Of the API reference, which computes it by itself."""


def _run(*words: str, body: bytes = BODY) -> Result:
    nothing = {"DATABASE_URL": None, "KAFKA_BOOTSTRAP_SERVERS": None, "STACK_DIR": "/nonexistent"}
    return CliRunner().invoke(main, list(words), input=body, env=nothing, catch_exceptions=False)


def test_body_is_signed_as_mizan_signs_it(tmp_path: Path) -> None:
    """From standard input or from a file, with a secret from the command line or from a file."""
    body, secret = tmp_path / "body.json", tmp_path / "secret"
    body.write_bytes(BODY)
    secret.write_text(f"{SECRET}\n")
    for words in (["--secret", SECRET], ["--secret-file", str(secret)], ["--secret", SECRET, str(body)]):
        assert _run("sign", *words).stdout == f"{SIGNATURE}\n"
    assert json.loads(_run("sign", "--secret", SECRET, "--json").stdout) == {
        "header": "Service-Signature",
        "signature": SIGNATURE,
    }


def test_every_byte_of_the_body_counts() -> None:
    """A line break at the end is another body, and bytes that are not text can be signed."""
    assert _run("sign", "--secret", SECRET, body=BODY + b"\n").stdout != f"{SIGNATURE}\n"
    assert _run("sign", "--secret", SECRET, body=b"\xff\x00").exit_code == 0


def test_valid_signature_is_verified(tmp_path: Path) -> None:
    """Also one with the old secret during a roll (§6.6)."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    for words in (
        ["--secret", SECRET],
        ["--secret-file", str(secret)],
        ["--secret", "whsec_new", "--secret", SECRET],
        ["--secret", "whsec_new", "--secret-file", str(secret)],
    ):
        answer = _run("verify", *words, "--signature", SIGNATURE)
        assert (answer.exit_code, answer.stdout) == (0, "the signature is valid\n")
    answer = _run("verify", "--secret", SECRET, "--signature", SIGNATURE, "--json")
    assert json.loads(answer.stdout) == {"valid": True}


@pytest.mark.parametrize(
    ("secret", "signature", "body"),
    [
        ("whsec_other", SIGNATURE, BODY),
        (SECRET, SIGNATURE, BODY + b" "),
        (SECRET, SIGNATURE[:-1], BODY),
        (SECRET, SIGNATURE.upper(), BODY),  # it is sent in lower case
        (SECRET, "", BODY),
        (SECRET, "توقيع", BODY),  # not ASCII
    ],
)
def test_other_signature_is_refused(secret: str, signature: str, body: bytes) -> None:
    words = ["verify", "--secret", secret, "--signature", signature]
    answer = _run(*words, body=body)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("the signature is not valid")
    answer = _run(*words, "--json", body=body)
    assert (answer.exit_code, json.loads(answer.stdout)) == (1, {"valid": False})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sign"], "Give the webhook secret with --secret or --secret-file"),
        (["sign", "--secret", "example"], "starts with whsec_"),
        (["sign", "--secret", "whsec_a", "--secret", "whsec_b"], "give only one"),
        (["verify", "--signature", SIGNATURE], "Give the webhook secret"),
        (["verify", "--secret", "example", "--signature", SIGNATURE], "starts with whsec_"),
        (["sign", "--secret", SECRET, "no-such-file"], "No such file"),
    ],
)
def test_wrong_use_is_told_from_a_wrong_signature(words: list[str], told: str) -> None:
    """With exit code 2. The message repeats no secret."""
    answer = _run(*words)
    assert answer.exit_code == 2
    assert told in " ".join(answer.stderr.split())
    assert "example" not in answer.stderr


def test_secret_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\xff")
    answer = _run("sign", "--secret-file", str(tmp_path / "secret"))
    assert answer.exit_code == 2
    assert "is not text" in " ".join(answer.stderr.split())
