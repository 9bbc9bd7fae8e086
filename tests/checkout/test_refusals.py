"""A payment is refused: customers read why, whether money was taken, and need not enter their wallet again."""

from datetime import timedelta

import pytest

from services.checkout.pages.labels import failure_message
from services.checkout.payments.limits import Refusal
from services.checkout.payments.one_time_codes import RESEND_AFTER_S
from services.checkout.providers.http_client import HttpReply, NoResponseError, ProviderClient
from services.checkout.providers.interface import FailureReason
from services.checkout.providers.sandbox import SandboxProvider
from shared.domain.attempts.decision_rules import OperatorDecision
from shared.domain.attempts.settlement import settle_decision
from tests.checkout.browser.page_states import SHOWN, processing
from tests.checkout.customer import Customer
from tests.checkout.test_payments import CODE, FORM, PAID
from tests.checkout.world import RETURN_URL, CheckoutWorld
from tests.clock import Clock

NOTHING_TAKEN = "Nothing was taken."
LOCAL_CARD = "6395043835180860"


@pytest.mark.parametrize(
    ("method", "phone", "lang", "sentence"),
    [
        ("sadad", "0921234567", "en", "Sadad takes 091 and 093 numbers only."),
        ("sadad", "+218 92 1234567", "ar", "سداد يقبل أرقام 091 و093 فقط."),
        ("adfali", "0971234567", "en", "Adfali takes 091 to 096 numbers only."),
        ("adfali", "٠٩٧١٢٣٤٥٦٧", "ar", "ادفعلي يقبل أرقام 091 إلى 096 فقط."),
    ],
    ids=["sadad en", "sadad ar", "adfali en", "adfali ar"],
)
def test_number_of_another_wallet_is_refused_with_the_prefixes(
    pages: CheckoutWorld, method: str, phone: str, lang: str, sentence: str
) -> None:
    intent = pages.make_intent()
    customer = pages.customer(intent, lang)
    assert customer.pay_by_wallet(method, phone).status_code == 422
    assert customer.text.count(sentence) == 2  # in the summary and at the field
    assert _phone(customer) == phone
    assert pages.attempts(intent) == []


def _phone(customer: Customer) -> str:
    return _value(customer, "phone")


def _value(customer: Customer, field: str) -> str:
    tag = customer.answer.text.partition(f'<input id="{field}"')[2].partition(">")[0]
    return tag.partition('value="')[2].partition('"')[0]


class TestEnteredWallet:
    """The browser that entered a phone number and a birth year finds them again after a refusal."""

    @pytest.mark.parametrize(
        ("phone", "code"),
        [
            pytest.param("0912345000", None, id="refused at once"),
            pytest.param("0912345995", "111111", id="refused at the code"),
        ],
    )
    def test_is_filled_in_after_a_refusal(self, pages: CheckoutWorld, phone: str, code: str | None) -> None:
        customer = pages.customer(pages.make_intent())
        customer.pay_by_wallet("sadad", phone, birth_year="1987")
        if code is not None:
            customer.enter_code(code)
        assert customer.title == FORM
        assert (_phone(customer), _value(customer, "birth_year")) == (phone, "1987")

    def test_is_filled_in_when_the_number_is_changed(self, pages: CheckoutWorld) -> None:
        customer = pages.customer(pages.make_intent())
        customer.pay_by_wallet("adfali", "0921234567")
        customer.open("lang=en&change=1")
        assert (_phone(customer), _value(customer, "birth_year")) == ("0921234567", "")

    def test_is_shown_to_nobody_else_and_for_no_other_intent(self, pages: CheckoutWorld) -> None:
        intent = pages.make_intent()
        customer = pages.customer(intent)
        customer.pay_by_wallet("sadad", "0912345000")
        assert _phone(pages.customer(intent)) == ""
        customer.url = pages.page(pages.make_intent())
        customer.open()
        assert customer.title == FORM
        assert _phone(customer) == ""

    def test_is_removed_from_the_browser_after_the_payment(self, pages: CheckoutWorld) -> None:
        customer = pages.customer(pages.make_intent())
        before = len(customer._session.cookies["mizan-checkout"])
        customer.pay_by_wallet("adfali", "0921234567")
        assert len(customer._session.cookies["mizan-checkout"]) > before + 100
        customer.enter_code("1111")
        assert customer.title == PAID
        assert len(customer._session.cookies["mizan-checkout"]) < before + 100


class TestNothingWasTaken:
    def test_is_said_after_a_refusal_of_the_provider(self, pages: CheckoutWorld) -> None:
        customer = pages.customer(pages.make_intent())
        for number in ("4000000000000002", "4000000000009995"):
            customer.pay_by_card(number)
            assert customer.title == FORM
            assert NOTHING_TAKEN in customer.text
        customer.pay_by_wallet("sadad", "0912345000")
        assert customer.title == FORM
        assert NOTHING_TAKEN in customer.text

    def test_is_not_said_if_an_operator_decided(self, pages: CheckoutWorld) -> None:
        intent = processing(pages)
        decision = OperatorDecision(is_paid=False, reason="not on the statement of today")
        with pages.database.transaction() as connection:
            settle_decision(connection, pages.attempt_ids(intent)[0], decision.outcome())
        customer = pages.customer(intent)
        assert "The payment was declined." in customer.text
        assert NOTHING_TAKEN not in customer.text
        assert "statement" not in customer.text

    def test_is_known_for_every_reason_but_none(self) -> None:
        for reason in (*FailureReason, *Refusal):
            assert failure_message(reason).endswith(NOTHING_TAKEN)
        assert not failure_message(None).endswith(NOTHING_TAKEN)  # the provider has no record of the attempt


class TestCodeOfACard:
    """Only the bank knows the phone, and the card is not stored: the provider resends by the charge's id."""

    def test_is_resent_if_the_provider_can(self, pages: CheckoutWorld) -> None:
        customer = _asked_for_code(pages)
        assert customer.resend_code().status_code == 429
        Clock(pages.database).advance(timedelta(seconds=RESEND_AFTER_S + 1))
        assert customer.resend_code().status_code == 200
        assert "A new code was sent." in customer.text
        assert pages.rows("select codes_sent, encrypted_phone from code_challenges") == [(2, None)]
        customer.enter_code("111111")
        assert customer.title == PAID

    def test_is_not_offered_again_if_the_provider_cannot(
        self, pages: CheckoutWorld, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(SandboxProvider, "can_resend_code", lambda _self, _method: False)
        customer = _asked_for_code(pages)
        assert "Send again" not in customer.text
        Clock(pages.database).advance(timedelta(seconds=RESEND_AFTER_S + 1))
        assert customer.resend_code().status_code == 502
        assert pages.rows("select codes_sent from code_challenges") == [(1,)]

    @pytest.mark.parametrize("status", [404, 500, None])
    def test_that_could_not_be_resent_leaves_the_attempt_as_it_is(
        self, pages: CheckoutWorld, monkeypatch: pytest.MonkeyPatch, status: int | None
    ) -> None:
        customer = _asked_for_code(pages)
        Clock(pages.database).advance(timedelta(seconds=RESEND_AFTER_S + 1))

        def fail(*_: object) -> HttpReply:
            if status is None:
                raise NoResponseError("no answer")
            return HttpReply(status, {"message": "no"})

        with monkeypatch.context() as broken:
            broken.setattr(ProviderClient, "post_json", fail)
            assert customer.resend_code().status_code == 502
        assert "The code could not be sent." in customer.text
        assert pages.rows("select state from payment_attempts") == [("awaiting_code",)]
        customer.enter_code("111111")
        assert customer.title == PAID

    @pytest.mark.parametrize(
        ("method", "link"), [("card", "Use another card or method"), ("sadad", "Change number or method")]
    )
    def test_page_leads_to_another_card_or_method(self, pages: CheckoutWorld, method: str, link: str) -> None:
        customer = pages.customer(pages.make_intent())
        if method == "card":
            customer.pay_by_card(LOCAL_CARD)
        else:
            customer.pay_by_wallet("sadad", "0913632323")
        assert customer.title == CODE
        assert link in customer.text


def _asked_for_code(pages: CheckoutWorld) -> Customer:
    customer = pages.customer(pages.make_intent())
    customer.pay_by_card(LOCAL_CARD)
    assert customer.title == CODE
    return customer


def test_page_of_a_payment_being_confirmed_may_be_closed(pages: CheckoutWorld) -> None:
    assert "You may close this page." in pages.customer(processing(pages)).text


def test_every_page_has_one_form_of_the_amount_and_of_the_way_back(
    pages: CheckoutWorld, subtests: pytest.Subtests
) -> None:
    has_way_back = {"ready", "failed", "paid", "expired", "no method", "redirect open"}
    for shown in SHOWN:
        with subtests.test(shown.name):
            customer = pages.customer(shown.make(pages))
            text = customer.text.replace("\u00a0", " ")
            assert text.count("25.5") == text.count("LYD 25.500") > 0
            links = customer.answer.text.count(f'href="{RETURN_URL.replace("&", "&amp;")}"')
            assert links == text.count("Return to merchant") == (shown.name in has_way_back)
            assert "Back to" not in text


@pytest.mark.parametrize(
    ("left", "is_counted"), [(timedelta(hours=23), False), (timedelta(seconds=3599), True)]
)
def test_time_is_counted_down_in_the_last_hour_only(
    pages: CheckoutWorld, left: timedelta, is_counted: bool
) -> None:
    """Before it, the page shows the end time. Both are in the page: the script shows the countdown in time."""
    intent = pages.make_intent()
    Clock(pages.database).stop_at(intent.expires_at - left)
    html = pages.customer(intent).answer.text
    assert ("Pay before" in html) is not is_counted
    assert ("<span data-counting>" in html) is is_counted
    assert ("<span data-counting hidden>" in html) is not is_counted
