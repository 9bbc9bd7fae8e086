"""`make bench` names the ratios that got worse than the committed ones by more than their noise."""

import pytest

from bench.baseline import Expected, describe_worse, read_baseline
from bench.figures import Figure

BASELINE = {
    "creates": Expected(0.4, noise=0.1, is_higher_better=True),
    "lists": Expected(1.0, noise=0.1, is_higher_better=False),
}


@pytest.mark.parametrize(
    ("name", "measured", "is_named"),
    [
        ("creates", 0.35, True),
        ("creates", 0.37, False),
        ("creates", 0.8, False),
        ("lists", 1.2, True),
        ("lists", 1.05, False),
        ("lists", 0.5, False),
        ("others", 0.0, False),
    ],
)
def test_figures_that_got_worse_are_named(name: str, measured: float, is_named: bool) -> None:
    worse = list(describe_worse([Figure(name, measured, "")], BASELINE))
    assert bool(worse) is is_named
    assert all(line.startswith(f"{name} {measured:.3g}, was ") for line in worse)


def test_committed_baseline_is_readable() -> None:
    baseline = read_baseline()
    assert "create_vs_pgbench" in baseline
    assert all(expected.value > 0 and 0 < expected.noise < 1 for expected in baseline.values())
