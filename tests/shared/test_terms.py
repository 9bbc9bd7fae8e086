"""The pages name states as docs/terms.md does, in both languages."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from flask import Flask
from flask_babel import Babel, force_locale

from shared.console import delivery_labels, payment_labels

PROJECT = Path(__file__).parent.parent.parent
LABELS: dict[str, Mapping[str, object]] = {
    "Payment": {str(key): label for key, label in payment_labels.STATUSES.items()},
    "Attempt": {str(key): label for key, label in payment_labels.ATTEMPT_STATES.items()},
    "Delivery": {str(key): label for key, label in delivery_labels.STATUSES.items()},
    "Event": {str(key): label for key, label in delivery_labels.EVENTS.items()},
}


@pytest.fixture(scope="module")
def app() -> Iterator[Flask]:
    app = Flask(__name__)
    Babel(app, default_translation_directories=str(PROJECT / "shared/console/translations"))
    with app.test_request_context():
        yield app


@pytest.mark.usefixtures("app")
@pytest.mark.parametrize("section", LABELS)
def test_states_are_named_as_in_the_list_of_terms(section: str) -> None:
    listed = _terms(section)
    assert set(listed) == set(LABELS[section])
    for value, (english, arabic) in listed.items():
        with force_locale("en"):
            assert str(LABELS[section][value]) == english
        with force_locale("ar"):
            assert str(LABELS[section][value]) == arabic


def test_pending_delivery_that_was_tried_is_retrying() -> None:
    assert delivery_labels.status_key("pending", 0) == "pending"
    assert delivery_labels.status_key("pending", 2) == delivery_labels.RETRYING
    assert delivery_labels.status_key("failed", 9) == "failed"


def _terms(section: str) -> dict[str, tuple[str, str]]:
    text = (PROJECT / "docs" / "terms.md").read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return {value: (english, arabic) for value, english, arabic in rows}
