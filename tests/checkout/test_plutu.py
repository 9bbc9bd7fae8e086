"""The Plutu provider: its requests, and how it interprets responses (DESIGN §4)."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

import pytest

from services.checkout.providers.interface import (
    Card,
    FailureReason,
    PaymentRequest,
    Provider,
    ProviderResponse,
    SubmittedCode,
    Wallet,
    build_response,
)
from services.checkout.providers.plutu import PlutuCredentials, PlutuProvider, UnusableCredentialsError
from services.checkout.providers.plutu_notifications import invoice_number, outcome_of, read_notification
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.attempts.status_inquiries import can_be_asked
from shared.domain.payment_methods import PaymentMethod
from tests.checkout.fake_plutu import (
    ACCESS_TOKEN,
    API_KEY,
    DROPS,
    HANGS,
    SECRET_KEY,
    Charge,
    FakePlutu,
    Misbehaviour,
    failing,
    saying,
)
from tests.logs import capture_logs

ATTEMPT = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
CREDENTIALS = PlutuCredentials(API_KEY, ACCESS_TOKEN, SECRET_KEY)
WALLET = Wallet("0913632323", 1999)
RIGHT_CODE = {PaymentMethod.SADAD: "123456", PaymentMethod.ADFALI: "1234"}
WRONG_CODE = {PaymentMethod.SADAD: "654321", PaymentMethod.ADFALI: "4321"}
NOBODY_KNOWS = build_response(ProviderAnswer.UNKNOWN, can_inquire=False)
AWAY = build_response(ProviderAnswer.DECLINED, FailureReason.PROVIDER_AWAY)

wallets = pytest.mark.parametrize("method", [PaymentMethod.SADAD, PaymentMethod.ADFALI])


@pytest.fixture
def stand_in() -> Iterator[FakePlutu]:
    with FakePlutu() as made:
        yield made
    assert made.complaints == []


@pytest.fixture
def plutu(stand_in: FakePlutu) -> Provider:
    return plutu_at(stand_in.url)


def plutu_at(url: str, credentials: PlutuCredentials = CREDENTIALS, timeout_s: float = 5.0) -> Provider:
    return PlutuProvider(url, credentials, return_url_base="https://pay.mizan.example/", timeout_s=timeout_s)


def payment(method: PaymentMethod = PaymentMethod.SADAD, amount: int = 12500) -> PaymentRequest:
    return PaymentRequest(ATTEMPT, UUID(int=7), method, amount, "LYD", "ar", lambda: False)


def entered(code: str, continuation: str | None = "7001", number: int = 1) -> SubmittedCode:
    return SubmittedCode(code, continuation, number)


def start(plutu: Provider, paid: PaymentRequest) -> ProviderResponse:
    return plutu.start(paid, None if paid.method is PaymentMethod.CARD else WALLET)


def started(plutu: Provider, paid: PaymentRequest) -> str:
    """Start a payment and return the process id that the code needs."""
    answer = start(plutu, paid)
    assert answer.outcome == AttemptOutcome(ProviderAnswer.NEEDS_CODE)
    assert answer.continuation is not None
    return answer.continuation


def needs_code(reason: FailureReason, continuation: str = "7001") -> ProviderResponse:
    return ProviderResponse(AttemptOutcome(ProviderAnswer.NEEDS_CODE, reason), continuation=continuation)


def test_initial_states_of_attempts_charge_nothing(plutu: Provider) -> None:
    assert {method: plutu.initial_state(method) for method in PaymentMethod} == {
        PaymentMethod.CARD: AttemptState.AWAITING_REDIRECT,
        PaymentMethod.SADAD: AttemptState.AWAITING_CODE,
        PaymentMethod.ADFALI: AttemptState.AWAITING_CODE,
    }


@pytest.mark.parametrize(
    ("method", "gateway"), [(PaymentMethod.SADAD, "sadadapi"), (PaymentMethod.ADFALI, "edfali")]
)
def test_a_wallet_is_charged_once_its_code_is_confirmed(
    plutu: Provider, stand_in: FakePlutu, method: PaymentMethod, gateway: str
) -> None:
    continuation = started(plutu, payment(method))
    assert stand_in.charges == []
    answer = plutu.confirm(payment(method), entered(RIGHT_CODE[method], continuation))
    (charge,) = stand_in.charges
    assert charge == Charge(gateway, f"{ATTEMPT}.1", "12.50", charge.transaction_id)
    assert answer == build_response(ProviderAnswer.PAID, reference=charge.transaction_id)
    year = {"birth_year": "1999"} if method is PaymentMethod.SADAD else {}
    assert [dict(request.fields) for request in stand_in.requests] == [
        {"mobile_number": "0913632323", "amount": "12.50", **year},
        {
            "process_id": continuation,
            "code": RIGHT_CODE[method],
            "amount": "12.50",
            "invoice_no": f"{ATTEMPT}.1",
        },
    ]


@wallets
def test_code_after_a_wrong_one_has_its_own_invoice(
    plutu: Provider, stand_in: FakePlutu, method: PaymentMethod
) -> None:
    continuation = started(plutu, payment(method))
    wrong = plutu.confirm(payment(method), entered(WRONG_CODE[method], continuation, 1))
    assert wrong == needs_code(FailureReason.WRONG_CODE, continuation)
    right = plutu.confirm(payment(method), entered(RIGHT_CODE[method], continuation, 2))
    assert right.outcome.answer is ProviderAnswer.PAID
    assert [charge.invoice_no for charge in stand_in.charges] == [f"{ATTEMPT}.2"]


@pytest.mark.parametrize("lang", ["ar", "en"])
def test_start_of_a_card_payment_redirects_to_plutus_page(
    plutu: Provider, stand_in: FakePlutu, lang: str
) -> None:
    answer = plutu.start(replace(payment(PaymentMethod.CARD), lang=lang), None)
    assert answer.outcome == AttemptOutcome(ProviderAnswer.NEEDS_REDIRECT)
    assert answer.redirect_url in stand_in.pages
    assert stand_in.requests[0].path == "/api/v1/transaction/localbankcards/confirm"
    assert dict(stand_in.requests[0].fields) == {
        "amount": "12.50",
        "invoice_no": f"{ATTEMPT}.0",
        "return_url": f"https://pay.mizan.example/providers/plutu/returns/{lang}/{ATTEMPT}",
        "lang": lang,
    }
    assert stand_in.charges == []


def test_return_of_a_customer_who_paid_is_paid(plutu: Provider, stand_in: FakePlutu) -> None:
    page = plutu.start(payment(PaymentMethod.CARD), None).redirect_url
    assert page is not None
    returned = read_notification(parse_qsl(urlsplit(stand_in.pay(page)).query), [SECRET_KEY])
    assert (returned.attempt, returned.amount) == (ATTEMPT, 12500)
    (charge,) = stand_in.charges
    assert outcome_of(returned) == AttemptOutcome(
        ProviderAnswer.PAID, provider_reference=charge.transaction_id
    )


def test_return_of_a_customer_who_canceled_is_declined(plutu: Provider, stand_in: FakePlutu) -> None:
    page = plutu.start(payment(PaymentMethod.CARD), None).redirect_url
    assert page is not None
    returned = read_notification(parse_qsl(urlsplit(stand_in.cancel(page)).query), [SECRET_KEY])
    assert outcome_of(returned) == AttemptOutcome(ProviderAnswer.DECLINED, FailureReason.LEFT_BY_CUSTOMER)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,hello",
        "ftp://pages.plutu.example/",
        "//pages.plutu.example/pay",
        "/pay/1",
        "https:///pay",
        "https://[half/pay",
        "https://pages.plutu.example\\@evil.example/",
        "https://pages.plutu.example/\r\nSet-Cookie: a=b",
        "https://pages.plutu.example/\x00",
        " https://pages.plutu.example/",
        "https://pages.plutu.example/" + "a" * 5000,
        "",
        None,
        7,
        ["https://pages.plutu.example/"],
    ],
)
def test_unusable_redirect_urls_are_refused(plutu: Provider, stand_in: FakePlutu, url: object) -> None:
    stand_in.misbehaviour = saying(200, {"status": 200, "result": {"redirect_url": url}})
    assert plutu.start(payment(PaymentMethod.CARD), None) == AWAY


@pytest.mark.parametrize(
    ("amount", "dinars"),
    [(10, "0.01"), (90, "0.09"), (500, "0.50"), (1000, "1.00"), (12500, "12.50"), (987_654_320, "987654.32")],
)
def test_amounts_are_sent_in_dinars_with_two_decimals(
    plutu: Provider, stand_in: FakePlutu, amount: int, dinars: str
) -> None:
    for method in PaymentMethod:
        start(plutu, payment(method, amount))
    assert [request.fields["amount"] for request in stand_in.requests] == [dinars] * 3


def test_amount_with_three_decimals_is_refused(plutu: Provider, stand_in: FakePlutu) -> None:
    """Plutu has two decimals, and no amount is rounded."""
    assert [amount for amount in range(990, 1011) if plutu.accepts_amount(amount)] == [990, 1000, 1010]
    for method in PaymentMethod:
        with pytest.raises(ValueError, match="exactly"):
            start(plutu, payment(method, 12505))
    with pytest.raises(ValueError, match="exactly"):
        plutu.confirm(payment(amount=12505), entered("123456"))
    assert stand_in.requests == []


# Misbehaviour without a usable response.
NO_ANSWERS = {
    "drops": DROPS,
    "500 with their code": failing(500, "BACKEND_SERVER_ERROR"),
    "503 with a code nobody knows": failing(503, "TEAPOT"),
    "500 that calls it a confirmation error": failing(500, "CONFIRMATION_ERROR"),
    "502 of a proxy": saying(502, b"<html>Bad Gateway</html>"),
    "garbage": saying(200, b"\xff\x00 what?"),
    "nothing": saying(200, b""),
    "a list": saying(200, [1, 2]),
    "an empty object": saying(200, {}),
    "a result that is none": saying(200, {"status": 200, "result": "yes"}),
    "an empty result": saying(200, {"status": 200, "result": {}}),
    "a status that contradicts": saying(
        200, {"status": 500, "result": {"transaction_id": "T1", "process_id": 1}}
    ),
    "a 500 that looks like a success": saying(
        500, {"status": 200, "result": {"transaction_id": "T1", "process_id": 1}}
    ),
    "an error beside a result": saying(
        200, {"result": {"transaction_id": "T1", "process_id": 1}, "error": {"code": "TEAPOT"}}
    ),
    "an error with neither code nor status": saying(200, {"error": {}}),
    "a redirect": saying(302, {"status": 302}),
    "a 4xx without a code": saying(422, {"message": "The given data was invalid."}),
    "a 500 that means 400": saying(500, {"error": {"status": 400, "code": "TEAPOT"}}),
    "a 4xx that means 500": saying(400, {"error": {"status": 500, "code": "TEAPOT"}}),
}
# A required value that is invalid.
NO_VALUES: list[object] = [None, "", "  ", True, 1.5, [], {"id": 1}, "a\x00b", "\ud800", "9" * 256]


@pytest.mark.parametrize("told", NO_ANSWERS.values(), ids=NO_ANSWERS)
@pytest.mark.parametrize("method", PaymentMethod)
def test_a_start_without_a_response_can_be_repeated(
    plutu: Provider, stand_in: FakePlutu, method: PaymentMethod, told: Misbehaviour
) -> None:
    """Nothing was charged: the code was not entered, or the page not seen."""
    stand_in.misbehaviour = told
    assert start(plutu, payment(method)) == AWAY


@wallets
@pytest.mark.parametrize("told", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_confirmation_without_a_response_is_unknown(
    plutu: Provider, stand_in: FakePlutu, method: PaymentMethod, told: Misbehaviour
) -> None:
    """Plutu may have charged and has no status inquiry: an operator decides."""
    continuation = started(plutu, payment(method))
    stand_in.misbehaviour = told
    assert plutu.confirm(payment(method), entered(RIGHT_CODE[method], continuation)) == NOBODY_KNOWS


@pytest.mark.parametrize("value", NO_VALUES, ids=ascii)
def test_successful_response_must_contain_its_reference(
    plutu: Provider, stand_in: FakePlutu, value: object
) -> None:
    named = {"process_id": value, "transaction_id": value}
    stand_in.misbehaviour = saying(200, {"status": 200, "result": named})
    assert start(plutu, payment()) == AWAY
    assert plutu.confirm(payment(), entered("123456")) == NOBODY_KNOWS


@pytest.mark.parametrize(("value", "kept"), [(815, "815"), ("0815", "0815"), ("TR-8/15", "TR-8/15")])
@pytest.mark.parametrize("status", [{"status": 200}, {"status": "200"}, {}, {"status": 200, "error": None}])
def test_ids_and_status_may_be_numbers_or_strings(
    plutu: Provider, stand_in: FakePlutu, value: object, kept: str, status: dict[str, object]
) -> None:
    stand_in.misbehaviour = saying(200, {**status, "result": {"process_id": value, "transaction_id": value}})
    assert started(plutu, payment()) == kept
    assert plutu.confirm(payment(), entered("123456")) == build_response(ProviderAnswer.PAID, reference=kept)


def test_a_hanging_provider_times_out(stand_in: FakePlutu) -> None:
    plutu = plutu_at(stand_in.url, timeout_s=0.3)
    stand_in.misbehaviour = HANGS
    assert start(plutu, payment()) == AWAY
    assert plutu.confirm(payment(), entered("123456")) == NOBODY_KNOWS


def test_a_refused_connection_means_not_sent(stand_in: FakePlutu) -> None:
    """So the customer may enter the same code again."""
    with FakePlutu() as gone:
        plutu = plutu_at(gone.url)
    for method in PaymentMethod:
        assert start(plutu, payment(method)) == AWAY
    assert plutu.confirm(payment(), entered("123456", "815")) == needs_code(
        FailureReason.PROVIDER_AWAY, "815"
    )


@wallets
def test_repeated_confirmation_after_a_lost_response_charges_once(
    plutu: Provider, stand_in: FakePlutu, method: PaymentMethod
) -> None:
    """It has the same invoice. "Already known" does not mean that the first one was declined."""
    confirmed = entered(RIGHT_CODE[method], started(plutu, payment(method)))
    stand_in.misbehaviour = replace(DROPS, works_first=True)
    assert plutu.confirm(payment(method), confirmed) == NOBODY_KNOWS
    stand_in.misbehaviour = None
    assert plutu.confirm(payment(method), confirmed) == NOBODY_KNOWS
    assert len(stand_in.charges) == 1


def test_a_code_cannot_be_confirmed_without_its_process_id(plutu: Provider, stand_in: FakePlutu) -> None:
    """The process was killed before it stored the process id."""
    answer = plutu.confirm(payment(), entered("123456", continuation=None))
    assert answer == build_response(ProviderAnswer.DECLINED, FailureReason.CODE_EXPIRED)
    assert stand_in.requests == []


def test_plutu_has_no_status_inquiry(plutu: Provider, stand_in: FakePlutu) -> None:
    assert plutu.status(payment()) == NOBODY_KNOWS
    assert stand_in.requests == []


REFUSALS = {
    "NOT_SUBSCRIBED": FailureReason.NOT_SUBSCRIBED,
    "INVALID_MOBILE_NUMBER": FailureReason.WRONG_PHONE,
    "INVALID_MOBILE_NUMBER_OR_BIRTH_YEAR": FailureReason.WRONG_PHONE_OR_BIRTH_YEAR,
    "OTP_WAIT_BEFORE_RESNED": FailureReason.WAIT_BEFORE_NEXT_CODE,
    "OTP_WAIT_BEFORE_RESEND": FailureReason.WAIT_BEFORE_NEXT_CODE,
    "INSUFFICIENT_BALANCE": FailureReason.INSUFFICIENT_FUNDS,
    "AMOUNT_EXCEEDED_MAXIMUM": FailureReason.AMOUNT_NOT_ALLOWED,
    "NOT_ALLOWED_AMOUNT": FailureReason.AMOUNT_NOT_ALLOWED,
    "CHECK_BANK_ACCOUNT": FailureReason.ACCOUNT_TROUBLE,
    "CONFIRMATION_ERROR": FailureReason.DECLINED,
    "SOMETHING_NEW": FailureReason.DECLINED,
}
CONFIRM_CODES = {
    **{code: build_response(ProviderAnswer.DECLINED, reason) for code, reason in REFUSALS.items()},
    "INVLIAD_OTP": needs_code(FailureReason.WRONG_CODE),
    "INVALID_OTP": needs_code(FailureReason.WRONG_CODE),
    "OTP_EXPIRED": needs_code(FailureReason.CODE_EXPIRED),
    # It is not said that nothing was charged.
    "CONFIRMATION_ERROR": NOBODY_KNOWS,
    "SOMETHING_NEW": NOBODY_KNOWS,
    # An earlier request with this invoice may have charged.
    "DUPLICATED_INVOICE_NUMBER": NOBODY_KNOWS,
    "BACKEND_SERVER_ERROR": NOBODY_KNOWS,
}
START_CODES = {
    **{code: build_response(ProviderAnswer.DECLINED, reason) for code, reason in REFUSALS.items()},
    # At a start there is no code yet.
    "INVLIAD_OTP": build_response(ProviderAnswer.DECLINED, FailureReason.DECLINED),
    "OTP_EXPIRED": build_response(ProviderAnswer.DECLINED, FailureReason.DECLINED),
    "DUPLICATED_INVOICE_NUMBER": AWAY,
    "BACKEND_SERVER_ERROR": AWAY,
}


@pytest.mark.parametrize(("code", "expected"), CONFIRM_CODES.items(), ids=CONFIRM_CODES)
def test_error_codes_of_a_confirmation(
    plutu: Provider, stand_in: FakePlutu, code: str, expected: ProviderResponse
) -> None:
    stand_in.misbehaviour = failing(400, code)
    for method in (PaymentMethod.SADAD, PaymentMethod.ADFALI):
        assert plutu.confirm(payment(method), entered("123456")) == expected
    stand_in.misbehaviour = saying(200, {"error": {"status": "400", "code": code}})
    assert plutu.confirm(payment(), entered("123456")) == expected


@pytest.mark.parametrize(("code", "expected"), START_CODES.items(), ids=START_CODES)
def test_error_codes_of_a_start(
    plutu: Provider, stand_in: FakePlutu, code: str, expected: ProviderResponse
) -> None:
    stand_in.misbehaviour = failing(400, code)
    assert [start(plutu, payment(method)) for method in PaymentMethod] == [expected] * 3


@pytest.mark.parametrize(
    ("method", "wallet", "reason"),
    [
        (PaymentMethod.SADAD, Wallet("0921234567", 1999), FailureReason.WRONG_PHONE_OR_BIRTH_YEAR),
        (PaymentMethod.SADAD, Wallet("0911234567", 1939), FailureReason.WRONG_PHONE_OR_BIRTH_YEAR),
        (PaymentMethod.ADFALI, Wallet("0971234567"), FailureReason.WRONG_PHONE),
    ],
)
def test_an_unknown_wallet_has_its_own_message(
    plutu: Provider, method: PaymentMethod, wallet: Wallet, reason: FailureReason
) -> None:
    assert plutu.start(payment(method), wallet) == build_response(ProviderAnswer.DECLINED, reason)


@pytest.mark.parametrize(
    "credentials",
    [replace(CREDENTIALS, api_key="another-key"), replace(CREDENTIALS, access_token="another-token")],
    ids=["api key", "access token"],
)
def test_wrong_credentials_are_an_account_problem_and_logged(
    stand_in: FakePlutu, credentials: PlutuCredentials
) -> None:
    plutu = plutu_at(stand_in.url, credentials)
    with capture_logs() as log:
        assert start(plutu, payment()) == build_response(
            ProviderAnswer.DECLINED, FailureReason.ACCOUNT_TROUBLE
        )
        assert plutu.confirm(payment(), entered("1")) == build_response(
            ProviderAnswer.DECLINED, FailureReason.ACCOUNT_TROUBLE
        )
    assert log.getvalue().count('"level": "error"') == 2
    assert str(ATTEMPT) in log.getvalue()


def test_status_403_is_an_account_problem_unless_the_error_code_says_more(
    plutu: Provider, stand_in: FakePlutu
) -> None:
    stand_in.misbehaviour = saying(403, {"message": "Forbidden"})
    assert plutu.confirm(payment(), entered("1")) == build_response(
        ProviderAnswer.DECLINED, FailureReason.ACCOUNT_TROUBLE
    )
    stand_in.misbehaviour = failing(403, "DUPLICATED_INVOICE_NUMBER")
    assert plutu.confirm(payment(), entered("1")) == NOBODY_KNOWS


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"api_key": ""}, "api_key"),
        ({"api_key": "hush\n"}, "api_key"),
        ({"access_token": "hush hush"}, "access_token"),
        ({"access_token": "hush\u0661"}, "access_token"),
        ({"secret_key": ""}, "secret_key"),
    ],
)
def test_unusable_credentials_are_refused_without_quoting_them(changed: dict[str, str], said: str) -> None:
    with pytest.raises(UnusableCredentialsError, match=said) as refused:
        PlutuCredentials(**{"api_key": API_KEY, "access_token": ACCESS_TOKEN, "secret_key": "s", **changed})
    assert "hush" not in str(refused.value)


def test_wallet_payment_needs_a_wallet_with_its_fields(plutu: Provider, stand_in: FakePlutu) -> None:
    """Other details are a programming error, which is reported without the card number."""
    with pytest.raises(TypeError, match="needs a wallet, not Card") as wrong:
        plutu.start(payment(), Card("4242424242424242", 8, 2031, "123"))
    assert "4242" not in str(wrong.value)
    with pytest.raises(TypeError, match="birth year"):
        plutu.start(payment(), Wallet("0913632323"))
    assert stand_in.requests == []


def test_secrets_are_neither_logged_nor_returned(stand_in: FakePlutu) -> None:
    """Even if Plutu quotes them in the message or the code of an error."""
    wallet, code = Wallet("0913632323", 19871987), "864-209-531"
    quoted = {"status": 400, "code": f"CODE_{code}_OF_{wallet.phone}", "message": f"{code} of {wallet.phone}"}
    quoting = [saying(status, {"error": quoted}) for status in (400, 500)]
    plutu = plutu_at(stand_in.url, timeout_s=0.2)
    with FakePlutu() as gone:
        nowhere = plutu_at(gone.url)
    with capture_logs(level="debug") as log:
        answers = [nowhere.start(payment(), wallet), nowhere.confirm(payment(), entered(code))]
        for told in [*NO_ANSWERS.values(), *quoting, HANGS, failing(401, "UNAUTHORIZED")]:
            stand_in.misbehaviour = told
            answers += [plutu.start(payment(), wallet), plutu.confirm(payment(), entered(code))]
    written = log.getvalue() + repr(answers) + repr(CREDENTIALS) + repr(plutu)
    assert "plutu may have charged attempt" in written
    for secret in (wallet.phone, str(wallet.birth_year), code, API_KEY, ACCESS_TOKEN, SECRET_KEY):
        assert secret not in written


def test_each_request_that_may_charge_has_its_own_invoice() -> None:
    numbers = [invoice_number(ATTEMPT, number) for number in range(20)]
    assert len(set(numbers)) == 20


def test_operators_are_not_told_to_ask_a_provider_without_a_status_call(plutu: Provider) -> None:
    """The monitor and the command line know which providers can be asked, and agree with what they answer."""
    assert not plutu.status(payment()).outcome.can_inquire
    assert not can_be_asked(plutu.name)
    assert can_be_asked("sandbox")
    assert can_be_asked("a new provider")
