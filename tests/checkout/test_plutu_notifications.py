"""Plutu's notifications are trusted only if they are signed (DESIGN §4)."""

from urllib.parse import parse_qsl
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from services.checkout.providers.interface import FailureReason, UntrustedNotificationError
from services.checkout.providers.plutu_notifications import (
    PlutuNotification,
    attempt_in,
    invoice_number,
    outcome_of,
    read_notification,
)
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.states import ProviderAnswer
from tests.checkout.fake_plutu import SECRET_KEY, Pairs, signed

ATTEMPT = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
APPROVED: Pairs = [
    ("gateway", "localbankcards"),
    ("approved", "1"),
    ("invoice_no", f"{ATTEMPT}.0"),
    ("amount", "12.50"),
    ("transaction_id", "T7002"),
]
CANCELED: Pairs = [
    ("gateway", "localbankcards"),
    ("canceled", "1"),
    ("invoice_no", f"{ATTEMPT}.0"),
    ("amount", "12.50"),
]
ORDERS = st.permutations(APPROVED)
ANY_TEXT = st.text(st.characters(), max_size=40)


def with_value(parameters: Pairs, name: str, value: str) -> Pairs:
    return [(one, value if one == name else old) for one, old in parameters]


def without(parameters: Pairs, name: str) -> Pairs:
    return [(one, value) for one, value in parameters if one != name]


def test_an_approved_payment_is_paid() -> None:
    returned = read_notification(signed(APPROVED), [SECRET_KEY])
    assert returned == PlutuNotification(
        ATTEMPT, approved=True, canceled=False, amount=12500, transaction_id="T7002"
    )
    assert outcome_of(returned) == AttemptOutcome(ProviderAnswer.PAID, provider_reference="T7002")


def test_a_canceled_payment_is_declined() -> None:
    returned = read_notification(signed(CANCELED), [SECRET_KEY])
    assert returned == PlutuNotification(
        ATTEMPT, approved=False, canceled=True, amount=12500, transaction_id=None
    )
    assert outcome_of(returned) == AttemptOutcome(ProviderAnswer.DECLINED, FailureReason.LEFT_BY_CUSTOMER)


def test_signature_made_with_openssl_is_accepted() -> None:
    """Made with openssl dgst -sha256 -hmac, so that the test does not depend on our own implementation."""
    query = (
        f"gateway=localbankcards&approved=1&invoice_no={ATTEMPT}.0&amount=12.50&transaction_id=T+7%2F002%3D"
        "&hashed=6BE7CF47465AA9DE805CA0F56D9E0D9E68DF41D583EAAE4A02E952231AA0226E"
    )
    assert read_notification(parse_qsl(query), ["another key"]).transaction_id == "T 7/002="


@given(order=ORDERS, at=st.integers(0, 5))
def test_parameters_are_accepted_in_the_signed_order(order: Pairs, at: int) -> None:
    """Wherever the parameter `hashed` is placed."""
    *rest, hashed = signed(order)
    assert read_notification([*rest[:at], hashed, *rest[at:]], [SECRET_KEY]).approved


@given(order=ORDERS)
def test_parameters_in_another_order_are_refused(order: Pairs) -> None:
    assume(order != APPROVED)
    with pytest.raises(UntrustedNotificationError, match="signature does not match"):
        read_notification([*order, signed(APPROVED)[-1]], [SECRET_KEY])


@given(at=st.integers(0, len(APPROVED)), value=ANY_TEXT)
def test_a_changed_value_is_refused(at: int, value: str) -> None:
    genuine = signed(APPROVED)
    name, old = genuine[at]
    assume(value != old)
    with pytest.raises(UntrustedNotificationError):
        read_notification(with_value(genuine, name, value), [SECRET_KEY])


@pytest.mark.parametrize("genuine", [APPROVED, CANCELED], ids=["approved", "canceled"])
def test_a_missing_parameter_is_refused(genuine: Pairs) -> None:
    for name, _ in signed(genuine):
        with pytest.raises(UntrustedNotificationError):
            read_notification(without(signed(genuine), name), [SECRET_KEY])


def test_missing_parameter_is_refused_even_if_signed() -> None:
    for name, _ in APPROVED:
        with pytest.raises(UntrustedNotificationError, match=r"missing|neither|without"):
            read_notification(signed(without(APPROVED, name)), [SECRET_KEY])


def test_empty_parameter_counts_as_missing() -> None:
    for name in ("gateway", "invoice_no", "amount"):
        with pytest.raises(UntrustedNotificationError, match=f"{name} is missing"):
            read_notification(signed(with_value(APPROVED, name, "")), [SECRET_KEY])


@pytest.mark.parametrize("name", [name for name, _ in signed(APPROVED)])
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_duplicate_parameter_is_refused(name: str, *, first: bool) -> None:
    """One value may be signed while the other one is read."""
    genuine = signed(APPROVED)
    for value in ("1", dict(genuine)[name]):
        doubled = [(name, value), *genuine] if first else [*genuine, (name, value)]
        with pytest.raises(UntrustedNotificationError, match="twice"):
            read_notification(doubled, [SECRET_KEY])


def test_duplicate_parameter_is_refused_even_if_signed() -> None:
    with pytest.raises(UntrustedNotificationError, match="twice"):
        read_notification(signed([*APPROVED, ("amount", "99.00")]), [SECRET_KEY])


@given(given_in=st.permutations(signed(CANCELED)), value=st.sampled_from(["1", "true", ""]))
def test_a_canceled_return_cannot_be_turned_into_an_approved_one(given_in: Pairs, value: str) -> None:
    for name in ("approved", "transaction_id"):
        with pytest.raises(UntrustedNotificationError):
            read_notification([*given_in, (name, value)], [SECRET_KEY])


def test_unsigned_parameters_are_ignored() -> None:
    extended = [("utm_source", "x"), *signed(APPROVED), ("Approved", "0")]
    assert read_notification(extended, [SECRET_KEY]) == read_notification(signed(APPROVED), [SECRET_KEY])


@pytest.mark.parametrize(
    "hashed",
    [
        signed(APPROVED)[-1][1].lower(),
        signed(APPROVED)[-1][1][:-1],
        signed(APPROVED)[-1][1] + "0",
        " " + signed(APPROVED)[-1][1],
        signed(APPROVED, "another key")[-1][1],
        signed(APPROVED, "")[-1][1],
        "",
        "\u0660" * 64,
        "\ud800",
    ],
    ids=ascii,
)
def test_a_wrong_signature_is_refused(hashed: str) -> None:
    with pytest.raises(UntrustedNotificationError):
        read_notification([*APPROVED, ("hashed", hashed)], [SECRET_KEY])


def test_an_account_without_a_key_refuses_all_notifications() -> None:
    with pytest.raises(UntrustedNotificationError, match="no key"):
        read_notification(signed(APPROVED, ""), [""])


@given(received=st.lists(st.tuples(st.sampled_from([name for name, _ in signed(APPROVED)]), ANY_TEXT)))
def test_untrusted_parameters_are_refused_and_not_quoted(received: Pairs) -> None:
    with pytest.raises(UntrustedNotificationError) as refused:
        read_notification(received, [SECRET_KEY])
    for _, value in received:
        assert len(value) < 12 or value not in str(refused.value)


# approved, canceled → whether it counts as approved; None: refused.
VERDICTS = [
    ("1", None, True),
    ("1", "0", True),
    ("1", "", True),
    ("0", None, False),
    ("", None, False),
    (None, "1", False),
    ("0", "1", False),
    ("", "1", False),
    ("0", "0", False),
    ("1", "1", None),
    (None, None, None),
    # Only 1 means yes. An unknown value may mean anything.
    ("true", None, None),
    ("01", None, None),
    ("1 ", None, None),
    ("\u0661", None, None),
    ("1", "true", None),
    (None, "yes", None),
]


@pytest.mark.parametrize(("approved", "canceled", "expected"), VERDICTS)
def test_only_1_counts_as_approved(approved: str | None, canceled: str | None, expected: bool | None) -> None:
    verdict = [(n, v) for n, v in (("approved", approved), ("canceled", canceled)) if v is not None]
    received = signed([*without(APPROVED, "approved"), *verdict])
    if expected is None:
        with pytest.raises(UntrustedNotificationError):
            read_notification(received, [SECRET_KEY])
    else:
        assert read_notification(received, [SECRET_KEY]).approved is expected


@pytest.mark.parametrize(
    ("amount", "minor"),
    [("12.50", 12500), ("12.5", 12500), ("12", 12000), ("0.001", 1), ("12.345", 12345), ("007.10", 7100)],
)
def test_amounts_are_parsed_exactly(amount: str, minor: int) -> None:
    assert read_notification(signed(with_value(APPROVED, "amount", amount)), [SECRET_KEY]).amount == minor


@given(minor=st.integers(0, 10**14))
def test_any_amount_with_three_decimals_is_parsed_exactly(minor: int) -> None:
    amount = f"{minor // 1000}.{minor % 1000:03}"
    assert read_notification(signed(with_value(APPROVED, "amount", amount)), [SECRET_KEY]).amount == minor


@pytest.mark.parametrize(
    "amount",
    ["NaN", "Infinity", "1e3", "-5", "+5", "12.5000", "12.", ".5", "1,000", "1_000", " 12.50", "12.50\n", "١٢",
     "0x10", "12.50 LYD", "9" * 13],
)  # fmt: skip
def test_amount_that_is_not_a_plain_decimal_is_refused(amount: str) -> None:
    with pytest.raises(UntrustedNotificationError, match="amount"):
        read_notification(signed(with_value(APPROVED, "amount", amount)), [SECRET_KEY])


@pytest.mark.parametrize("transaction_id", ["", "  ", "a\x00b", "a\nb", "9" * 256])
def test_approved_payment_needs_a_storable_reference(transaction_id: str) -> None:
    with pytest.raises(UntrustedNotificationError, match="transaction_id"):
        read_notification(signed(with_value(APPROVED, "transaction_id", transaction_id)), [SECRET_KEY])


@given(attempt=st.uuids(), number=st.integers(0, 10**6))
def test_an_invoice_names_its_attempt(attempt: UUID, number: int) -> None:
    assert attempt_in(invoice_number(attempt, number)) == attempt


@pytest.mark.parametrize(
    "invoice_no",
    ["1001", f"{ATTEMPT}", f"{ATTEMPT}.", f"{ATTEMPT}.-1", f"{ATTEMPT}.01", f"{ATTEMPT}.٣", f"{ATTEMPT}.0\n",
     f"{ATTEMPT.hex}.0", f"{{{ATTEMPT}}}.0", f"{ATTEMPT}.0".upper(), f"x{ATTEMPT}.0"],
)  # fmt: skip
def test_invoice_that_is_not_ours_names_no_attempt(invoice_no: str) -> None:
    assert attempt_in(invoice_no) is None
    with pytest.raises(UntrustedNotificationError, match="invoice_no"):
        read_notification(signed(with_value(APPROVED, "invoice_no", invoice_no)), [SECRET_KEY])
