"""docs/statuses.md lists every status and code of the code, and no other, with the names that the pages use."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from flask import Flask
from flask_babel import Babel

from services.api.openapi.document import make_document
from services.checkout.pages.labels import ERROR_MESSAGES
from services.checkout.payments.limits import Refusal
from services.checkout.providers.interface import FailureReason
from services.dashboard.deliveries.labels import RESPONSE_CLASSES
from services.dashboard.payments.labels import REASONS
from services.webhooks.retry_schedule import DeliveryStatus
from shared.console import delivery_labels, payment_labels
from shared.console.delivery_labels import RETRYING
from shared.domain.attempts import settlement
from shared.domain.attempts.states import AttemptState
from shared.domain.deliveries.exhausted import GONE
from shared.domain.deliveries.try_results import NO_URL, ResponseClass, TryFailure
from shared.domain.intents.states import IntentStatus
from shared.platform.settings import PublicUrls
from tests.readme.documents import ROOT, Document

_PAGE = Document(ROOT / "docs" / "statuses.md")
_STATUS_CODE = re.compile(r"`(\d{3})`")
_REASONS_IN_SQL = re.findall(r"'duplicate', '([^']+)'", settlement._INSERT_DUPLICATE)
CODES: dict[str, tuple[Iterable[str], Mapping[Any, object]]] = {
    "Payments": (IntentStatus, payment_labels.STATUSES),
    "Attempts": (AttemptState, payment_labels.ATTEMPT_STATES),
    "Why an attempt was declined": ([*FailureReason, *_REASONS_IN_SQL], REASONS),
    "When the checkout refuses a step": (
        Refusal,
        {code: text for code, text in ERROR_MESSAGES.items() if isinstance(code, Refusal)},
    ),
    "Deliveries": ([*DeliveryStatus, RETRYING, GONE], delivery_labels.STATUSES),
    "Tries": (ResponseClass, {ResponseClass.OTHER: "", **RESPONSE_CLASSES}),
    "Why a try has no status code": ([*TryFailure, NO_URL], delivery_labels.FAILURES),
}
"""For each section, the codes that exist, and what the pages call them."""


@pytest.fixture(scope="module")
def english() -> Iterator[None]:
    app = Flask(__name__)
    Babel(app, default_locale="en")
    with app.test_request_context():
        yield


@pytest.mark.usefixtures("english")
@pytest.mark.parametrize("section", CODES)
def test_section_lists_exactly_the_codes_that_exist_and_their_names(section: str) -> None:
    codes, labels = CODES[section]
    listed = [(code.strip("`"), label) for code, label, *_ in _PAGE.rows(section)]
    assert sorted(code for code, _ in listed) == sorted(map(str, codes))
    assert dict(listed) == {str(code): str(label) for code, label in labels.items()}


@pytest.mark.parametrize("section", CODES)
def test_each_code_has_a_meaning_and_says_what_to_do(section: str) -> None:
    assert all(meaning and to_do for _, _, meaning, to_do in _PAGE.rows(section))


def test_status_codes_are_those_of_the_api_reference_and_of_a_proxy() -> None:
    referenced = {
        code
        for path, operations in make_document(PublicUrls(), "/api/v1")["paths"].items()
        if path.startswith("/payment-intents")
        for operation in operations.values()
        for code in operation["responses"]
    }
    listed = {
        code for cell, *_ in _PAGE.rows("HTTP status codes of the API") for code in _STATUS_CODE.findall(cell)
    }
    assert listed == referenced | {"502", "504"}
