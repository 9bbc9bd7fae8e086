"""Keys with a row that Kafka refuses: their rows wait, with growing pauses, while all others go on."""

from dataclasses import dataclass
from time import monotonic

from prometheus_client import Gauge

from shared.backoff import growing_pause

PARKED = Gauge("mizan_relay_parked_keys", "Keys whose rows wait because Kafka refused one of them")

Key = tuple[str, str]
"""Topic and key."""


class RowsRefusedError(Exception):
    """Kafka refuses rows of the outbox; somebody has to look at them."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    failures: int
    retry_at: float


class ParkedKeys:
    def __init__(self) -> None:
        self._refusals: dict[Key, _Refusal] = {}

    def park(self, key: Key, reason: str) -> None:
        known = self._refusals.get(key)
        failures = known.failures + 1 if known else 1
        self._refusals[key] = _Refusal(reason, failures, monotonic() + growing_pause(failures))
        PARKED.set(len(self._refusals))

    def release(self, keys: set[Key]) -> None:
        """Their rows have gone out."""
        for key in keys & self._refusals.keys():
            del self._refusals[key]
        PARKED.set(len(self._refusals))

    def waiting(self) -> list[Key]:
        """Those that it is not yet time to try again."""
        now = monotonic()
        return [key for key, refusal in self._refusals.items() if refusal.retry_at > now]

    def check(self) -> None:
        """For /readyz, from another thread."""
        refusals = dict(self._refusals)
        if refusals:
            (topic, key), refusal = next(iter(refusals.items()))
            raise RowsRefusedError(
                f"rows of {len(refusals)} keys are refused, such as {key} of {topic}: {refusal.reason}"
            )
