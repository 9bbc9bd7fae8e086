"""How long a look may take in all, whatever it asks for."""

from time import monotonic

from shared.kafka.clients import KafkaUnavailableError


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = monotonic() + seconds

    def left(self) -> float:
        """For the next question; raises KafkaUnavailableError when nothing is left."""
        left = self._at - monotonic()
        if left <= 0:
            raise KafkaUnavailableError(f"no answer within {self._seconds:g} s")
        return left
