"""What customers pay with: the cards and phones of docs/sandbox.md, and the outcome of each. Pure."""

from dataclasses import dataclass, field
from random import Random

_RIGHT_CODES = {"card": "111111", "sadad": "111111", "adfali": "1111"}
WRONG_CODES = {6: "222222", 4: "2222"}
"""By their length."""

_CARDS = {
    "pays": "4242424242424242",
    "declines": "4000000000000002",
    "lacks_funds": "4000000000009995",
    "asks_for_code": "6395043835180860",
    "pays_in_silence": "4000000000000077",
    "declines_in_silence": "4000000000000341",
    "declines_until_late": "4000000000000259",
}
_SCRIPTS = {"declines_until_late": "declines"}
"""The name of the sandbox's scripted outcome, where it is not that of the card."""


@dataclass(frozen=True, slots=True)
class Instrument:
    method: str
    script: str
    """A name of the sandbox's scripted outcomes."""
    form: dict[str, str] = field(hash=False)
    """The fields of the payment form."""

    @property
    def right_code(self) -> str:
        return _RIGHT_CODES[self.method]

    @property
    def wrong_code(self) -> str:
        return WRONG_CODES[len(self.right_code)]


def card(name: str) -> Instrument:
    """Return the card with this name in the table above."""
    form = {"method": "card", "card_number": _CARDS[name], "expiry": "12/40", "security_code": "737"}
    return Instrument("card", _SCRIPTS.get(name, name), form)


def sadad(random: Random) -> Instrument:
    return _wallet("sadad", _phone(random, ("091", "093")), "asks_for_code", birth_year="1990")


def adfali(random: Random) -> Instrument:
    return _wallet("adfali", _phone(random, ("091", "092", "093", "094", "095", "096")), "asks_for_code")


def sadad_with_wrong_birth_year() -> Instrument:
    return _wallet("sadad", "0913632323", "wrong_phone_or_birth_year", birth_year="1998")


def wallet_without_subscription(random: Random) -> Instrument:
    return _any_wallet(random, "000", "not_subscribed")


def wallet_that_lacks_funds(random: Random) -> Instrument:
    return _any_wallet(random, "995", "asks_for_code_and_lacks_funds")


def _any_wallet(random: Random, ending: str, script: str) -> Instrument:
    method = random.choice(("sadad", "adfali"))
    return _wallet(method, f"091{random.randrange(10_000):04}{ending}", script, birth_year="1990")


def _wallet(method: str, phone: str, script: str, birth_year: str = "") -> Instrument:
    return Instrument(method, script, {"method": method, "phone": phone, "birth_year": birth_year})


def _phone(random: Random, prefixes: tuple[str, ...]) -> str:
    """Return a phone number without a scripted ending. The last digit 1 excludes them all."""
    return f"{random.choice(prefixes)}{random.randrange(1_000_000):06}1"
