"""From when on something is a trouble: the same numbers as in the alert rules of observability/."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Seconds, where nothing else is said."""

    lag_s: float = 60.0
    outbox_s: float = 30.0
    retry_late_s: float = 30.0
    attempt_s: float = 300.0
    expiry_late_s: float = 60.0
    not_taken_in_s: float = 300.0
    overdue_s: float = 900.0
    decided_at_least: int = 20
    """Attempts in an hour: fewer tell nothing of how many are paid."""
    paid_at_least: float = 0.25
    """Of the attempts that were decided."""
