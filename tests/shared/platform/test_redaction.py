"""Redaction: secrets, cards, codes and phone numbers are hidden; ids, offsets and times stay."""

import re
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.platform.card_numbers import MAX_SEPARATORS, SEPARATORS
from shared.platform.redaction import REDACTED, TOO_DEEP, UNREADABLE, is_sensitive_name, redact, redact_text

ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
PERSIAN = str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹")
INTENT = "019a8f3e-1111-7222-8333-446655440000"


@pytest.mark.parametrize(
    "name",
    [
        "password",  # as is
        "new_password",  # a prefix
        "sasl.password",  # a librdkafka setting
        "password2",  # a number after it
        "secret",
        "webhook_secret",
        "token",
        "access_token",
        "accessToken",  # camel case
        "ACCESS-TOKEN",  # case and dashes do not matter
        "Authorization",
        "HTTP_AUTHORIZATION",  # as WSGI names it
        "api_key",
        "X-API-Key",
        "apikey",
        "api_keys",  # several
        "Set-Cookie",
        "card_number",
        "pan",
        "cvc",
        "cvv2",
        "security_code",
        "card_expiry",
        "expiry",  # of a card; an intent has expires_at
        "exp_month",
        "code",  # what a customer types
        "otp",
        "one_time_code",
        "verification_code",
        "phone",
        "customer.phone",  # dotted, as in our error fields
        "mobile_number",
        "msisdn",
        "birth_year",
        "signing_key",
        "MIZAN_SECRET_KEYS",
        "MIZAN_WEBHOOK_SECRET_KEYS",
        "MIZAN_PROVIDER_KEYS",
        "MIZAN_CUSTOMER_KEYS",
        "MIZAN_SESSION_KEYS",
        "X-Vault-Token",
        "Service-Signature",
    ],
)
def test_sensitive_names_hide_their_value(name: str) -> None:
    """A value under a sensitive name is hidden whatever it looks like."""
    assert redact({name: "x"}) == {name: REDACTED}


@pytest.mark.parametrize(
    "name",
    [
        "status_code",  # of HTTP
        "response_code",
        "event_code",
        "error_code",
        "country_code",
        "key",  # of a Kafka record
        "idempotency_key",
        "public_key",
        "token_bucket",  # a limiter
        "secret_version",  # which one, not what
        "phone_verified",
        "lifespan",  # ends in "pan"
        "shipping",  # contains "pin"
        "expires_at",  # of an intent
        "partition",
        "",
    ],
)
def test_similar_names_stay_readable(name: str) -> None:
    """Names are compared word by word, not by what they happen to contain."""
    assert not is_sensitive_name(name)
    assert redact({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key pk_live_aB3dE5fG7h refused", "key pk_[redacted] refused"),  # API key
        ("at_9f8e7d6c5b4a", "at_[redacted]"),  # an access token
        ("whsec_Zm9v+YmFy/YmF6==", "whsec_[redacted]"),  # a webhook secret
        ("/invitations/inv_aB3dE5fG7h", "/invitations/inv_[redacted]"),  # an invitation link
        ("got Bearer abcdef", "got Bearer [redacted]"),  # any bearer token
        ("bearer a.b-c_d~e+f/g==", "bearer [redacted]"),  # a JWT-like one
        ("Basic dXNlcjpwYXNz", "Basic [redacted]"),
        ("Authorization: Digest user=a, b=c", "Authorization: [redacted]"),  # a scheme we do not know
        ("Cookie: a=1; session=2\nHost: x", "Cookie: [redacted]\nHost: x"),  # to the end of the line
        ("postgresql://mizan:s3cret@db:5432/m", "postgresql://mizan:[redacted]@db:5432/m"),
        ("postgresql://mizan:s/cr@t@db/m", "postgresql://mizan:[redacted]@db/m"),  # unescaped / and @
        ("redis://:pw@cache", "redis://:[redacted]@cache"),  # no user
        ("host=db password=hunter2 user=m", "host=db password=[redacted] user=m"),  # libpq
        ("login failed: password=hunter2", "login failed: password=[redacted]"),  # after another colon
        ("{'password': 'my own word', 'a': 1}", "{'password': '[redacted]', 'a': 1}"),  # a printed dict
        ('{"password": "a\\"b", "a": 1}', '{"password": "[redacted]", "a": 1}'),  # JSON with an escaped quote
        ('"{\\"secret\\": \\"a b\\"}"', '"{\\"secret\\": \\"[redacted]\\"}"'),  # JSON in JSON
        ("Card(cvc='123', brand='local')", "Card(cvc='[redacted]', brand='local')"),  # a printed dataclass
        ("password='unclosed", "password=[redacted]"),  # cut off in the middle
        ("card 4242 4242 4242 4242.", "card [redacted]."),
        ("4242-4242-4242-4242", "[redacted]"),
        ("GET /pay/4000.0000.0000.9995", "GET /pay/[redacted]"),  # in a path
        ("4000/0000/0000/9995 declined", "[redacted] declined"),
        ("4000\n0000\r\n0000\t9995", "[redacted]"),  # over several lines
        ("4000%2E0000%2F0000%0A9995", "[redacted]"),  # these in a URL
        ("%34000%2E0000%2e0000%2E999%35", "[redacted]"),  # and with escaped digits
        ("4000\\n0000\\u002e0000\\x2f9995", "[redacted]"),  # these escaped
        ("5018 0000 0009", "[redacted]"),  # 12 digits
        ("pay 203.113.100.250 4000.0000.0000.9995", "pay 203.113.100.250 [redacted]"),  # beside an address
        ("091.234.5678", "[redacted]"),  # a phone
        ("your code is 11.11.11", "your code is [redacted]"),
        ("6395043835180860", "[redacted]"),  # a Libyan card
        ("378282246310005", "[redacted]"),  # 15 digits
        ("1000 4242 4242 4242 4242 123", "1000 [redacted] 123"),  # other numbers around it
        ("1.4242 4242 4242 4242", "1.[redacted]"),  # in a numbered list
        ("order_4242424242424242", "order_[redacted]"),
        ("رقم4242424242424242", "رقم[redacted]"),  # right after an Arabic letter
        ("\\n4242424242424242\\n", "\\n[redacted]\\n"),  # between escapes
        ("n=4242%204242%204242%204242", "n=[redacted]"),  # in a URL
        ("n=4242+4242+4242+4242", "n=[redacted]"),  # in a form
        ("n%3D4242424242424242", "n%3D[redacted]"),  # a form in a URL
        ("\\u0664\\u0662" + "42" * 7, "[redacted]"),  # JSON escapes Arabic digits
        ("\\xd9\\xa4\\xd9\\xa2" + "42" * 7, "[redacted]"),  # and so do printed bytes
        ("call 0912345678", "call [redacted]"),
        ("+218912345678", "+[redacted]"),
        ("00218 91-234-5678", "[redacted]"),
        ("218912345678", "[redacted]"),  # without the plus
        ("q=%2B218912345678", "q=+[redacted]"),  # in a URL
        ("٠٩١٢٣٤٥٦٧٨", "[redacted]"),  # Arabic-Indic
        ("۰۹۱۲۳۴۵۶۷۸", "[redacted]"),  # Extended Arabic-Indic
        ("\u200f091\u200e234\u2068 56\u206978", "\u200f[redacted]"),  # bidi marks between
        ("code=1234", "code=[redacted]"),
        ("otp: 123456", "otp: [redacted]"),
        ("your code is 111111", "your code is [redacted]"),
        ("verification code 1111", "verification code [redacted]"),
        ("code: ١٢٣٤", "code: [redacted]"),
        ("{'code': '111111'}", "{'code': '[redacted]'}"),
        (  # a form as the aggregator wants it
            "mobile_number=0913632323&birth_year=1999&code=111111&amount=5",
            "mobile_number=[redacted]&birth_year=[redacted]&code=[redacted]&amount=5",
        ),
    ],
)
def test_secrets_in_text_are_hidden(text: str, expected: str) -> None:
    """Only the secret is hidden; the text around it stays."""
    assert redact_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        INTENT,
        "41234507-1234-4234-8234-123456789012",  # of digits only, the first sixteen a card number
        f"delivery {INTENT} sent in 12 ms",
        "offset 123456789012",
        "1763172184123",  # milliseconds
        "1763172184123456789",  # nanoseconds
        "2025-11-15T02:03:04.123456Z",
        "2025-11-15 02:03:04+00:00",
        "2025-11-15 2025-11-16",  # a range of days, sixteen digits
        "amount 125000 LYD",
        "1234.500",
        "took 0.4242424242424242 s",  # decimals that happen to be a card number
        "elapsed 0.0912345678",  # decimals that happen to be a phone number
        "abc4242424242424242",  # inside a longer run
        "4242424242424242f00d",
        "4242 4242 4242 4241",  # fails Luhn
        "4.242424242424242",  # decimal numbers whose digits happen to be a card or phone number
        "0.912345678 s",
        "2025/11/15 2025/11/16",
        "25.11.2025 25.11.2025",  # sixteen digits that pass Luhn
        "203.113.100.251 203.113.100.251",  # addresses
        "a%2Fb%2E%0Ac",  # escapes that do not stand between digits
        "status code: 4040",
        "error code 1045",
        "exit code 137",
        "code: NOT_SUBSCRIBED",
        'violates "pk_payment_intents"',  # a constraint
        "pk_webhook_tries_2025_11",
        "at_least_once",
        "created_at_index01",
        "a bearer token is required",
        "basic checks passed",
        "http://localhost:8001/users/a@example.com",
        "partition=3 key=abc",
        "10.20.30.40:9092",
        "",
    ],
)
def test_ordinary_text_stays_readable(text: str) -> None:
    """Ids, offsets, times, amounts, dates and prose are needed in logs."""
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"card": {"number": "x", "brand": "local"}}, {"card": {"number": REDACTED, "brand": "local"}}),
        ({"a": [{"password": "x"}, ("b", 1)]}, {"a": [{"password": REDACTED}, ("b", 1)]}),  # deeper down
        ({"headers": [("Cookie", "x"), ("A", "b")]}, {"headers": [("Cookie", REDACTED), ("A", "b")]}),
        ({"secret": {"a": 1}}, {"secret": REDACTED}),  # the whole branch
        ({"code": 111111}, {"code": REDACTED}),  # a number
        (
            {"password": None, "token": "", "otp": True},
            {"password": None, "token": "", "otp": True},
        ),  # these reveal nothing
        ({"0912345678": 1}, {REDACTED: 1}),  # in a key
        ({b"authorization": b"x"}, {"b'authorization'": REDACTED}),  # bytes name
        (4242424242424242, REDACTED),  # a card as a number
        (218912345678, REDACTED),  # a phone as a number
        (1763172184123, 1763172184123),  # milliseconds
        (-1, -1),
        (2.5, 2.5),
        (b"\xff password=x", "\\xff password=[redacted]"),
        ("٠٩١٢٣٤٥٦٧٨".encode(), REDACTED),  # bytes of Arabic digits
        (bytearray(b"4242424242424242"), REDACTED),
        (ValueError("card 4242424242424242"), "ValueError: card [redacted]"),
        ({1, 2}, [1, 2]),
        (uuid.UUID(INTENT), INTENT),
        (Decimal("1.500"), "1.500"),
        (date(2025, 11, 15), "2025-11-15"),
        (datetime(2025, 11, 15, 2, 3, 4, tzinfo=UTC), "2025-11-15 02:03:04+00:00"),
    ],
)
def test_values_of_every_type_are_redacted(value: object, expected: object) -> None:
    """Nested values, bytes, numbers, errors and objects are searched too."""
    assert redact(value) == expected


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("4242424242424242")


def test_value_that_cannot_be_printed_does_not_affect_others() -> None:
    """It is replaced by UNREADABLE; the fields beside it stay."""
    assert redact({"bad": Hostile(), "worse": [Hostile()], "good": 1}) == {
        "bad": UNREADABLE,
        "worse": [UNREADABLE],
        "good": 1,
    }


def test_cyclic_value_is_cut_off() -> None:
    """It does not cause a stack overflow."""
    cycle: dict[str, object] = {}
    cycle["again"] = cycle
    assert TOO_DEEP in repr(redact(cycle))


ANY_TEXT = st.text(st.characters(exclude_categories=[]))
LEAVES = ANY_TEXT | st.binary() | st.integers() | st.floats() | st.none()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(LEAVES, inner)))
def test_redaction_never_raises(value: object) -> None:
    """Not even for lone surrogates and NULs."""
    redact(value)


def with_check_digit(digits: str) -> str:
    doubled = [int(d) * 2 if i % 2 == 0 else int(d) for i, d in enumerate(reversed(digits))]
    return digits + str(-sum(d // 10 + d % 10 for d in doubled) % 10)


CARD_NUMBERS = st.from_regex(r"[2-6][0-9]{11,17}", fullmatch=True, alphabet=st.characters(codec="ascii")).map(
    with_check_digit
)
ACCEPTED = [chr(point) for point in range(0x10000) if re.fullmatch(f"[{SEPARATORS}]", chr(point))]
BETWEEN = st.just("") | st.text(st.sampled_from(ACCEPTED), max_size=MAX_SEPARATORS)


@given(st.data())
def test_every_card_number_is_redacted(data: st.DataObject) -> None:
    """Any Luhn-valid number, in any digits, with the separators that the card form accepts, in any sentence."""
    number = data.draw(CARD_NUMBERS).translate(data.draw(st.sampled_from([{}, ARABIC, PERSIAN])))
    spelled = number[0] + "".join(data.draw(BETWEEN) + digit for digit in number[1:])
    before, after = data.draw(
        st.sampled_from(
            [("", ""), ("card ", " declined"), ("n=", "&x=1"), ('{"n": "', '"}'), ("100 ", " 12")]
        )
    )
    assume(not re.fullmatch(r"\d{1,3}\.\d+", spelled))  # a decimal number
    hidden = redact_text(before + spelled + after)
    assert REDACTED in hidden
    assert sum(map(str.isdecimal, hidden)) <= sum(map(str.isdecimal, before + after))
    assert redact({"note": spelled, "raw": spelled.encode()}) == {"note": REDACTED, "raw": REDACTED}
