"""Who may download at this moment: a few in each process, of each merchant one. Slow readers stop nobody else."""

from threading import Lock
from uuid import UUID


class Places:
    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: set[UUID] = set()
        self._lock = Lock()

    def take(self, merchant_id: UUID) -> bool:
        """Whether there was one."""
        with self._lock:
            if merchant_id in self._taken or len(self._taken) >= self._most:
                return False
            self._taken.add(merchant_id)
            return True

    def give_back(self, merchant_id: UUID) -> None:
        with self._lock:
            self._taken.discard(merchant_id)
