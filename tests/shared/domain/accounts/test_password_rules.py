"""Which passwords people may choose."""

import pytest

from shared.domain.accounts.password_rules import PasswordFlaw, PasswordNotAllowedError, check_password

EMAIL = "amal@example.ly"


@pytest.mark.parametrize(
    "text",
    [
        "password1234",
        "PassWord1234",
        " password1234 ",
        "1qaz2wsx3edc",
        "ｐａｓｓｗｏｒｄ１２３４",  # full-width letters
        "P@ssw0rd1234",  # other letters for the same ones
        "iloveyou1234",  # a common one with digits
        "Password1234!",
        "passwordpassword",
        "aaaaaaaaaaaaaaaa",
        "123456789012",
    ],
)
def test_common_password_is_refused(text: str) -> None:
    assert _flaw(text) is PasswordFlaw.COMMON


@pytest.mark.parametrize(
    "text",
    [
        "seven boats of AMAL at sea",
        "amal@example.ly",
        "seven Mizan boats at sea",
        "سبعة قوارب ميزان في البحر",
    ],
)
def test_password_with_the_email_address_or_the_products_name_is_refused(text: str) -> None:
    assert _flaw(text) is PasswordFlaw.PERSONAL


def test_name_of_three_letters_may_be_in_a_password_but_not_the_whole_address() -> None:
    assert check_password("seven boats of ali at sea", "ali@example.ly")
    with pytest.raises(PasswordNotAllowedError):
        check_password("seven boats ali@example.ly", "ali@example.ly")


@pytest.mark.parametrize("text", ["", "short", "x1 y2 z3 w4", "seven boats " * 20])
def test_password_of_the_wrong_length_is_refused(text: str) -> None:
    assert _flaw(text) is PasswordFlaw.LENGTH


@pytest.mark.parametrize(
    "text",
    [
        "seven small boats at sea",
        "correct horse battery staple",
        "سبعة قوارب صغيرة في البحر",
        "w8Kq-Zr41_xPvB2t",
        "\ud800 lone and long",
    ],
)
def test_password_that_is_hard_to_guess_is_accepted(text: str) -> None:
    assert check_password(text, EMAIL) == text


def _flaw(text: str) -> PasswordFlaw:
    with pytest.raises(PasswordNotAllowedError) as refused:
        check_password(text, EMAIL)
    return refused.value.flaw
