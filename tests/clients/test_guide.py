"""The snippets of the guide on the API's reference page, as a merchant would run them with the client."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from services.api.openapi import examples
from shared.domain.deliveries.signing import sign_body, signing_key
from tests.clients.real_api import RealApi
from tests.merchants.languages import LANGUAGES, PATH, Language
from tests.readme.documents import ROOT, Document

GUIDE, ARABIC_GUIDE = (
    Document(ROOT / "services" / "api" / "openapi" / name) for name in ("guide.md", "guide.ar.md")
)
_BLOCKS = {"Python": "python", "Node": "js", "PHP": "php"}
_CALLS = {
    "Python": """
import json, os, sys
with open("body.json", "rb") as body:
    json.dump(receive(body.read(), os.environ["SIGNATURE"], [os.environ["SECRET"]]), sys.stdout)
""",
    "Node": """
import { readFileSync } from 'node:fs';
console.log(JSON.stringify(receive(readFileSync('body.json'), process.env.SIGNATURE, [process.env.SECRET])));
""",
    "PHP": """
echo json_encode(receive(file_get_contents('body.json'), getenv('SIGNATURE'), [getenv('SECRET')]));
""",
}
"""What a snippet that defines `receive` needs to be run."""


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.name)
def language(request: pytest.FixtureRequest, tmp_path: Path) -> Language:
    made: Language = request.param
    made.require()
    made.install_client(tmp_path)
    return made


def test_both_languages_of_the_guide_have_the_same_code() -> None:
    for block in _BLOCKS.values():
        assert GUIDE.code(block) == ARABIC_GUIDE.code(block)


def test_intent_is_created_and_retrieved(language: Language, tmp_path: Path, real_api: RealApi) -> None:
    code, _ = GUIDE.code(_BLOCKS[language.name])
    keys = real_api.application
    environment = {
        "MIZAN_URL": real_api.base_url,
        "MIZAN_API_KEY": keys.api_key,
        "MIZAN_ACCESS_TOKEN": keys.access_token,
    }
    done = _run(language, code, tmp_path, environment)
    assert done.returncode == 0, done.stderr
    status, checkout_url = done.stdout.split()
    assert status == "requires_payment_method"
    assert "/pay/" in checkout_url


def test_webhook_is_verified(language: Language, tmp_path: Path) -> None:  # §6.4
    """The delivery of the API reference is accepted; with one byte more it is not."""
    _, code = GUIDE.code(_BLOCKS[language.name])
    delivery = examples.delivery_body("payment_intent.succeeded")
    body = examples.encode_body(delivery)
    environment = {
        "SIGNATURE": sign_body(body, signing_key(examples.WEBHOOK_SECRET)),
        "SECRET": examples.WEBHOOK_SECRET,
    }
    (tmp_path / "body.json").write_bytes(body)
    accepted = _run(language, code + _CALLS[language.name], tmp_path, environment)
    assert accepted.returncode == 0, accepted.stderr
    assert json.loads(accepted.stdout) == [delivery["id"], delivery["data"]["uuid"]]
    (tmp_path / "body.json").write_bytes(body + b" ")
    forged = _run(language, code + _CALLS[language.name], tmp_path, environment)
    assert forged.returncode != 0
    assert "The signature does not match." in forged.stderr


def _run(
    language: Language, code: str, directory: Path, environment: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    program = shutil.which(language.presence[0], path=PATH)
    assert program is not None
    file = directory / f"snippet.{language.suffix}"
    file.write_text(code)
    return subprocess.run(
        [program, file.name],
        cwd=directory,
        env={**os.environ, **environment},  # noqa: TID251  the process needs HOME and the like
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
