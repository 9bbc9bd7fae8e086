"""The sandbox's ledger, read over HTTP, page by page."""

from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec
import requests

from mizan.audit.comparing import Charge

FIRST = UUID(int=0)
_PATIENCE_S = 15


class LedgerAwayError(Exception):
    """The sandbox does not answer, or says something that is no ledger."""


class _Answer(msgspec.Struct, frozen=True):
    charges: list[Charge]


class Ledger:
    def __init__(self, url: str) -> None:
        self._url = f"{url}/charges"
        self._session = requests.Session()
        self._session.trust_env = False  # neither a proxy nor credentials out of somebody's home directory

    def charges(self, until: UUID) -> Iterator[Charge]:
        """In the order of their attempts."""
        after = FIRST
        while page := self._ask(after=after):
            for charge in page:
                if charge.attempt > until:
                    return
                yield charge
            after = page[-1].attempt

    def of_attempt(self, attempt: UUID) -> Sequence[Charge]:
        return self._ask(attempt=attempt)

    def close(self) -> None:
        self._session.close()

    def _ask(self, **query: UUID) -> list[Charge]:
        words = {name: str(value) for name, value in query.items()}
        try:
            answer = self._session.get(self._url, params=words, timeout=_PATIENCE_S, allow_redirects=False)
            answer.raise_for_status()
            return msgspec.json.decode(answer.content, type=_Answer).charges
        except (requests.RequestException, msgspec.MsgspecError) as error:
            raise LedgerAwayError(f"the sandbox's ledger cannot be read: {type(error).__name__}") from error
