"""The page of a payment: details, attempts and timeline, without secrets."""

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

from shared.domain.accounts.roles import Role
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.settlement import settle_notification, settle_response
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find, expire_due
from tests.clock import Clock
from tests.code_entries import enter_wrong_codes
from tests.dashboard.payment_rows import make_attempt, make_delivery, make_intent
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient


def open_payment(world: DashboardWorld, intent: UUID, role: Role = Role.VIEWER) -> PageClient:
    person = world.person(role)
    answer = person.open(f"/applications/{world.application.id}/payments/{intent}")
    assert answer.status_code == 200
    return person


def new_intent(world: DashboardWorld, **given: object) -> UUID:
    new = NewIntent(world.application.id, "order 1", 25_500, "LYD", **given)  # type: ignore[arg-type]
    with world.database.cursor() as cursor:
        return create_or_find(cursor, new)[0].uuid


def in_order(text: str, *parts: str) -> None:
    """Check that the texts appear in this order."""
    place = text.index("Timeline")
    for part in parts:
        place = text.find(part, place)
        assert place >= 0, f"{part!r} is missing, or too early"
        place += len(part)


def test_payment_details_are_shown_as_they_were_sent(pages: DashboardWorld) -> None:
    intent = new_intent(
        pages,
        description="قهوة <b>عربية</b>",
        customer_external_id="customer-77",
        return_url="javascript://x/%0aalert(1)",
        metadata={"z": "1", "a": "<script>alert(1)</script>"},
    )
    person = open_payment(pages, intent)
    for text in (
        "LYD 25.500",
        "Waiting for payment",
        "order 1",
        str(intent),
        "قهوة <b>عربية</b>",
        "customer-77",
        "javascript://x/%0aalert(1)",
        f"https://pay.mizan.example/pay/{intent}",
        "has not tried to pay yet",
    ):
        assert text in person.text
    page = person.response.text
    assert "<b>عربية" not in page
    assert 'href="javascript' not in page
    shown = json.dumps({"z": "1", "a": "<script>alert(1)</script>"}, indent=2)
    assert " ".join(shown.split()) in person.text


def test_the_timeline_of_a_payment_that_was_declined_and_then_paid(pages: DashboardWorld) -> None:
    intent = new_intent(pages)
    for answer, reason in ((ProviderAnswer.DECLINED, "insufficient_funds"), (ProviderAnswer.PAID, None)):
        with pages.database.transaction() as connection:
            request = start_attempt(connection, intent, "card", "sandbox", AttemptState.SENT)
        with pages.database.transaction() as connection:
            settle_response(connection, request, AttemptOutcome(answer, reason, f"sandbox-{answer}"))
    make_delivery(pages, intent, "pending", tries=2, status_code=503)
    person = open_payment(pages, intent)
    in_order(
        person.text,
        "Created by your server.",
        "The customer started to pay: Bank card.",
        "Processing",
        "Declined: Bank card. There was not enough money in the account.",
        "Waiting for payment again.",
        "The customer started to pay: Bank card.",
        "Processing",
        "The provider confirmed the payment: Bank card.",
        "Paid.",
        "Webhook payment_intent.succeeded Pending, retrying 2 tries, last answer 503",
        "Attempts to pay",
        "Declined There was not enough money in the account.",
        "Paid",
        "sandbox-paid",
    )


def test_late_payment_and_a_duplicate_are_explained(pages: DashboardWorld, clock: Clock) -> None:
    intent = new_intent(pages)
    with pages.database.transaction() as connection:
        first = start_attempt(connection, intent, "card", "plutu", AttemptState.AWAITING_REDIRECT)
        second = start_attempt(
            connection, intent, "sadad", "plutu", AttemptState.AWAITING_REDIRECT, leave_redirect=True
        )
    clock.advance(timedelta(days=2))
    with pages.database.cursor() as cursor:
        assert expire_due(cursor) == 1
    for attempt in (first, second):
        with pages.database.transaction() as connection:
            settle_notification(
                connection,
                attempt.attempt,
                AttemptOutcome(ProviderAnswer.PAID, None, f"plutu-{attempt.attempt}"),
            )
    person = open_payment(pages, intent)
    in_order(
        person.text,
        "Created by your server.",
        "Expired unpaid.",
        "Paid late",
        "A second payment was taken: Sadad. Settle it with the customer.",
        "Duplicate payment",
        f"plutu-{second.attempt}",
    )
    assert "This was paid twice" in person.text


def test_payment_page_shows_no_secrets(pages: DashboardWorld) -> None:
    """No phone, code or credential, and no text of a provider."""
    intent = new_intent(pages)
    attempt = make_attempt(pages, intent, "awaiting_code", reason="phone 0913632323 code 111111")
    pages.run(
        """insert into code_challenges (attempt_id, continuation, phone_hint, encrypted_phone, expires_at)
           values (%s, 'continuation-1', '…323', 'sealed-1', now())""",
        attempt,
    )
    pages.run(
        """insert into provider_accounts (application_id, method, adapter, encrypted_credentials)
           values (%s, 'card', 'plutu', 'sealed-2')""",
        pages.application.id,
    )
    page = open_payment(pages, intent, Role.OWNER).response.text
    for secret in ("0913632323", "111111", "continuation-1", "…323", "sealed-1", "sealed-2"):
        assert secret not in page
    assert "An operator decided it. The audit log says why." in page


def test_webhook_in_the_timeline_links_to_its_delivery(pages: DashboardWorld) -> None:
    intent = make_intent(pages, "order 1", at=datetime.now(UTC))
    delivery = make_delivery(pages, intent, "failed", tries=9, status_code=None, failure="timeout")
    other = make_delivery(pages, intent, application_id=pages.make_merchant("Other").application.id)
    person = open_payment(pages, intent)
    assert f"/deliveries/{delivery}" in person.response.text
    assert str(other) not in person.response.text


def test_wrong_codes_are_not_shown_as_requests_for_money(pages: DashboardWorld) -> None:
    intent = new_intent(pages)
    enter_wrong_codes(pages.database, intent, 2)
    timeline = open_payment(pages, intent).text.partition("Timeline")[2].partition("Attempts to pay")[0]
    assert "asked to take the money" not in timeline
    in_order(
        f"Timeline {timeline}",
        "The customer started to pay: Adfali.",
        "Wrong code entered (1 of 5); nothing was taken.",
        "Wrong code entered (2 of 5); nothing was taken.",
    )
    assert "Waiting for payment again." not in timeline
    arabic = pages.person(Role.VIEWER, lang="ar")
    arabic.open(f"/applications/{pages.application.id}/payments/{intent}")
    assert "أُدخل رمز خاطئ (2 من 5)؛ لم يُخصم شيء" in arabic.text
