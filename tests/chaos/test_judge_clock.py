"""What the product's clock can have shown when, and which times are around a fault."""

import pytest

from chaos.history import ClockMoved, FaultBegan, FaultEnded
from chaos.judge.clock import ProductClock
from chaos.judge.faults import AFTER_SECONDS, BEFORE_SECONDS, FaultPeriods

_MOVES = [
    ClockMoved(at=102.0, began_at=100.0, seconds=1000.0),
    ClockMoved(at=201.0, began_at=200.0, seconds=50.0),
]


@pytest.mark.parametrize(
    ("at", "lowest", "highest"),
    [
        (99, 99, 99),
        (100, 100, 1100),
        (101.9, 101.9, 1101.9),
        (102, 1102, 1102),
        (200.5, 1200.5, 1250.5),
        (300, 1350, 1350),
    ],
)
def test_clock_shows_either_side_of_a_jump_that_is_under_way(
    at: float, lowest: float, highest: float
) -> None:
    clock = ProductClock(_MOVES)
    assert (clock.lowest(at), clock.highest(at)) == pytest.approx((lowest, highest))


@pytest.mark.parametrize(
    ("reading", "reached", "left"),
    [
        (50, 50, 50),
        (99.5, 99.5, 99.5),
        (101, 100, 101),
        (500, 100, 102),
        (1101, 101, 102),
        (1150, 150, 150),
        (1225, 200, 201),
        (1350, 300, 300),
    ],
)
def test_reading_belongs_to_a_time_of_the_machine(reading: float, reached: float, left: float) -> None:
    """A reading that the clock jumped over belongs to the jump."""
    clock = ProductClock(_MOVES)
    assert (clock.reached_at(reading), clock.left_at(reading)) == pytest.approx((reached, left))


def test_readings_and_times_agree() -> None:
    clock = ProductClock(_MOVES)
    for tenths in range(900, 2600):
        at = tenths / 10
        for reading in (clock.lowest(at), clock.highest(at)):
            assert clock.reached_at(reading) <= at + 1e-6
            assert clock.left_at(reading) >= at - 1e-6


def test_times_around_faults() -> None:
    began = [
        FaultBegan(at=1000.0, number=1, fault="kill", target="a", details=""),
        FaultBegan(at=1010.0, number=2, fault="cut", target="b", details=""),
        FaultBegan(at=3000.0, number=3, fault="clock", target="c", details=""),
        FaultBegan(at=5000.0, number=4, fault="stop", target="d", details=""),
    ]
    ended = [
        FaultEnded(at=1040.0, number=1, problem=None),
        FaultEnded(at=1012.0, number=2, problem=None),
        FaultEnded(at=3001.0, number=3, problem=None),
    ]
    faults = FaultPeriods(began, ended, load_stopped_at=6000.0)

    def around(at: float) -> tuple[bool, bool]:
        return faults.is_around(at, at), faults.process_or_network_is_around(at, at)

    assert around(1000 - BEFORE_SECONDS - 1) == (False, False)
    assert around(1000 - BEFORE_SECONDS + 1) == (True, True)
    assert around(1040 + AFTER_SECONDS - 1) == (True, True)
    assert around(1040 + AFTER_SECONDS + 1) == (False, False)
    assert around(3000) == (True, False)
    assert around(5900) == (True, True)
    assert around(6000 + AFTER_SECONDS + 1) == (False, False)
    assert faults.is_around(500, 5000)
    assert not faults.is_around(1500, 2000)
