"""The test signature in docs/guides/webhooks.md (§6.4) is the same in our code, in each language and in openssl."""

import os
import subprocess
from pathlib import Path

import pytest

from services.api.openapi import examples
from shared.domain.deliveries.signing import sign_body, signing_key
from tests.merchants.document import copy_files, vector
from tests.merchants.languages import PATH, Language

VECTOR = vector()
FLIPPED = VECTOR.body.replace(b"succeeded", b"succeedeD")


def test_example_signature_matches_our_code_and_the_api_reference() -> None:
    assert sign_body(VECTOR.body, signing_key(VECTOR.secret)) == VECTOR.signature
    assert examples.encode_body(examples.delivery_body("payment_intent.succeeded")) == VECTOR.body
    assert VECTOR.secret == examples.WEBHOOK_SECRET


@pytest.mark.parametrize(("body", "is_genuine"), [(VECTOR.body, True), (FLIPPED, False)])
def test_client_of_each_language_verifies_the_signature(
    language: Language, tmp_path: Path, body: bytes, is_genuine: bool
) -> None:
    language.install_client(tmp_path)
    (tmp_path / "body.json").write_bytes(body)
    done = _run([*language.checking], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0 if is_genuine else 1, "", "")


@pytest.mark.parametrize(("body", "answer"), [(VECTOR.body, "genuine\n"), (FLIPPED, "forged\n")])
def test_openssl_verifies_the_signature(tmp_path: Path, body: bytes, answer: str) -> None:
    copy_files(tmp_path, "verify.sh")
    (tmp_path / "body.json").write_bytes(body)
    assert _run(["sh", "verify.sh"], tmp_path).stdout == answer


def _run(command: list[str], directory: Path) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ,  # noqa: TID251  a process of its own needs HOME and the like
        "PATH": PATH,
        "MIZAN_WEBHOOK_SECRET": VECTOR.secret,
        "SIGNATURE": VECTOR.signature,
    }
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=30, check=False
    )
