"""What each order of a run does, drawn from the seed: how it is created, and how its customer pays. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from chaos.load.instruments import (
    Instrument,
    adfali,
    card,
    sadad,
    sadad_with_wrong_birth_year,
    wallet_that_lacks_funds,
    wallet_without_subscription,
)

_SHORTEST_EXPIRY_S, _LONGEST_EXPIRY_S = 330.0, 1200.0
"""The API demands more than 300 s, and a create may have to be repeated."""
_LONG_EXPIRY_S = 3 * 24 * 3600.0


class ClickStyle(StrEnum):
    ONCE = "once"
    DOUBLE = "double"
    """The same form twice at once."""
    GIVEN_UP = "given_up"
    """The connection is closed before there is an answer."""


class CreateStyle(StrEnum):
    ONCE = "once"
    REPEATED = "repeated"
    """Again later, with the same reference and another amount."""
    CONCURRENT = "concurrent"
    """Three at once, with the same reference and different amounts."""


class LateSettlement(StrEnum):
    """When the bank says that a declined charge was paid after all."""

    SOON = "soon"
    AFTER_CANCELED = "after_canceled"
    AFTER_PAID = "after_paid"
    """By another attempt, so that the charge is a duplicate."""


@dataclass(frozen=True, slots=True)
class Payment:
    """One try of a customer to pay."""

    instrument: Instrument
    style: ClickStyle = ClickStyle.ONCE
    codes: tuple[str, ...] = ()
    """The codes that the customer enters if asked for one."""
    code_style: ClickStyle = ClickStyle.ONCE


@dataclass(frozen=True, slots=True)
class Visit:
    """What a customer does at the checkout."""

    payments: tuple[Payment, ...] = ()
    has_two_tabs: bool = False
    """The first two payments are made at once, in two tabs."""
    late: LateSettlement | None = None
    expires_soon: bool = False
    thinks_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OrderPlan:
    number: int
    application: int
    """Its position among the applications."""
    reference: str
    amounts: tuple[int, ...]
    """Of its creates: only the first that arrives counts."""
    create_style: CreateStyle
    expires_in_s: float | None
    scenario: str
    visit: Visit


def plan_order(seed: int, number: int, applications: int) -> OrderPlan:
    """Return the plan of the order with this number. The same arguments give the same plan."""
    random = Random(f"{seed}/order/{number}")
    scenario, make_visit = random.choices(_SCENARIOS, weights=_WEIGHTS)[0]
    visit = make_visit(random)
    return OrderPlan(
        number=number,
        application=random.randrange(applications),
        reference=f"order-{number}",
        amounts=tuple(random.sample(range(1_000, 500_000), 3)),
        create_style=random.choices(tuple(CreateStyle), weights=(78, 14, 8))[0],
        expires_in_s=_expires_in(random, visit),
        scenario=scenario,
        visit=visit,
    )


def _expires_in(random: Random, visit: Visit) -> float | None:
    """Return after how many seconds the intent expires; None for the default of the API."""
    if visit.expires_soon or random.random() < 0.2:
        return random.uniform(_SHORTEST_EXPIRY_S, _LONGEST_EXPIRY_S)
    return random.choice((None, None, _LONG_EXPIRY_S))


def _with_right_code(instrument: Instrument) -> Payment:
    return Payment(instrument, codes=(instrument.right_code,))


def _any_with_code(random: Random) -> Instrument:
    return random.choice((card("asks_for_code"), sadad(random), adfali(random)))


def _any_that_pays(random: Random) -> Payment:
    return random.choice(
        (
            Payment(card("pays")),
            _with_right_code(card("asks_for_code")),
            _with_right_code(sadad(random)),
            _with_right_code(adfali(random)),
        )
    )


def _one(make: Callable[[Random], Payment]) -> Callable[[Random], Visit]:
    return lambda random: Visit((make(random),), thinks_s=random.uniform(0, 3))


def _then_pays(make: Callable[[Random], Instrument], share: float = 0.7) -> Callable[[Random], Visit]:
    """A payment that fails, after which most customers try again."""

    def visit(random: Random) -> Visit:
        failing = _with_right_code(make(random))
        second = (_any_that_pays(random),) if random.random() < share else ()
        return Visit((failing, *second), thinks_s=random.uniform(0, 3))

    return visit


def _wrong_codes(count: int, *, then_right: bool) -> Callable[[Random], Visit]:
    def visit(random: Random) -> Visit:
        used = _any_with_code(random)
        right = (used.right_code,) if then_right else ()
        return Visit((Payment(used, codes=(used.wrong_code,) * count + right),))

    return visit


def _in_two_tabs(random: Random) -> Visit:
    return Visit((_any_that_pays(random), _any_that_pays(random)), has_two_tabs=True)


def _settled_late(late: LateSettlement) -> Callable[[Random], Visit]:
    def visit(random: Random) -> Visit:
        second = (_any_that_pays(random),) if late is LateSettlement.AFTER_PAID else ()
        expires_soon = late is LateSettlement.AFTER_CANCELED
        return Visit((Payment(card("declines_until_late")), *second), late=late, expires_soon=expires_soon)

    return visit


def _gives_up_click(random: Random) -> Visit:
    first = Payment(card(random.choice(("pays", "declines", "asks_for_code"))), ClickStyle.GIVEN_UP)
    return Visit((first, _any_that_pays(random)))


def _gives_up_code(random: Random) -> Visit:
    used = _any_with_code(random)
    return Visit((Payment(used, codes=(used.right_code,) * 2, code_style=ClickStyle.GIVEN_UP),))


def _double_clicks_code(random: Random) -> Visit:
    used = _any_with_code(random)
    return Visit((Payment(used, codes=(used.right_code,), code_style=ClickStyle.DOUBLE),))


def _pays_near_expiry(random: Random) -> Visit:
    """A customer who comes back later: a jump of the clock may have passed the expiry."""
    return Visit((_any_that_pays(random),), expires_soon=True, thinks_s=random.uniform(15, 60))


_Scenario = tuple[str, Callable[[Random], Visit]]
_WEIGHTED_SCENARIOS: Sequence[tuple[int, str, Callable[[Random], Visit]]] = (
    (22, "card pays", _one(lambda _: Payment(card("pays")))),
    (9, "sadad pays", _one(lambda random: _with_right_code(sadad(random)))),
    (8, "adfali pays", _one(lambda random: _with_right_code(adfali(random)))),
    (6, "card pays with a code", _one(lambda _: _with_right_code(card("asks_for_code")))),
    (5, "card declined", _then_pays(lambda _: card("declines"))),
    (3, "card lacks funds", _then_pays(lambda _: card("lacks_funds"))),
    (2, "wallet lacks funds", _then_pays(wallet_that_lacks_funds)),
    (2, "wallet not subscribed", _then_pays(wallet_without_subscription)),
    (2, "wrong birth year", _then_pays(lambda _: sadad_with_wrong_birth_year())),
    (3, "silence, paid", _one(lambda _: Payment(card("pays_in_silence")))),
    (2, "silence, declined", _then_pays(lambda _: card("declines_in_silence"))),
    (4, "wrong code, then right", _wrong_codes(1, then_right=True)),
    (1, "five wrong codes", _wrong_codes(5, then_right=False)),
    (3, "code never entered", _wrong_codes(0, then_right=False)),
    (5, "double click", _one(lambda _: Payment(card("pays"), ClickStyle.DOUBLE))),
    (2, "double click on a code", _double_clicks_code),
    (3, "two tabs", _in_two_tabs),
    (3, "click given up", _gives_up_click),
    (1, "code given up", _gives_up_code),
    (2, "settled late, soon", _settled_late(LateSettlement.SOON)),
    (2, "settled late, after canceled", _settled_late(LateSettlement.AFTER_CANCELED)),
    (1, "settled late, after paid", _settled_late(LateSettlement.AFTER_PAID)),
    (7, "expires unpaid", lambda _: Visit(expires_soon=True)),
    (2, "pays near the expiry", _pays_near_expiry),
)
_SCENARIOS: Sequence[_Scenario] = tuple((name, visit) for _, name, visit in _WEIGHTED_SCENARIOS)
_WEIGHTS = tuple(weight for weight, _, _ in _WEIGHTED_SCENARIOS)
SCENARIO_NAMES = tuple(name for name, _ in _SCENARIOS)
