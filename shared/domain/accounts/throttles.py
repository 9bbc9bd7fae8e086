"""Slows down who guesses passwords: by account and by address, whether or not there is such an account.

An account is that of a user or of an operator, for all memberships together.

A try is counted before the password is looked at, so that many at one moment do not slip through. What is counted
stands in the database only as a keyed hash.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from shared.platform.client_network import client_network

_RESET_AFTER_S = 3600


@dataclass(frozen=True, slots=True)
class ThrottleLimit:
    free: int
    """So many failures cost nothing."""
    longest_wait_s: int
    """With each one more the wait is twice as long, up to this. An account's is short: anybody can fail on purpose,
    and its owner must not be locked out."""


ACCOUNT = ThrottleLimit(free=5, longest_wait_s=60)
ADDRESS = ThrottleLimit(free=30, longest_wait_s=300)

# One statement counts and tells how long it had to wait; who has to wait is not counted again.
_COUNT = """
insert into login_throttles as known (key, failures, last_failure_at, expires_at)
values (%(key)s, 1, mizan_now(), mizan_now() + make_interval(secs => %(forgotten)s))
on conflict (key) do update set
    failures = case when known.expires_at <= mizan_now() then 1 else known.failures + 1 end,
    last_failure_at = mizan_now(), expires_at = excluded.expires_at
where known.expires_at <= mizan_now() or known.failures < %(free)s
   or known.last_failure_at <= mizan_now() - make_interval(
          secs => least(%(longest)s, power(2, least(known.failures - %(free)s, 30))))
returning failures"""
_UNCOUNT = "update login_throttles set failures = greatest(0, failures - 1) where key = %s"
_RESET = "delete from login_throttles where key = %s"


class SignInThrottledError(Exception):
    """Too many sign-ins have failed; no password was looked at."""

    def __init__(self, *, is_address: bool = False) -> None:
        super().__init__()
        self.is_address = is_address
        """Whether the address was throttled, whatever the account."""


@dataclass(frozen=True, slots=True)
class GuessedAccount:
    """An account that a password is tried for."""

    id: str
    browser: str | None = None
    """The browser that the attempt comes from, if somebody has signed in to this very account with it before."""


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    address: str
    account: GuessedAccount
    counted: frozenset[str]
    """The names of the counters that this attempt has increased."""


class SignInThrottle:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def count_attempt(
        self, connection: Connection[Any], account: GuessedAccount, address: str
    ) -> CountedAttempt:
        """Count an attempt for the address, for the account and, if it knows the account, for the browser.

        An account accepts so many guesses from all browsers together. A browser that knows the account has guesses of
        its own instead: who guesses elsewhere does not lock out the owner. Raises SignInThrottledError if the account
        accepts no guess; roll back then, so that nothing was counted.
        """
        if not self._count(connection, _address_counter(address), ADDRESS):
            raise SignInThrottledError(is_address=True)
        counters = _counters(account)
        accepting = [counter for counter in counters if self._count(connection, counter, ACCOUNT)]
        if counters[-1] not in accepting:
            raise SignInThrottledError
        return CountedAttempt(address, account, frozenset(accepting))

    def record_success(self, connection: Connection[Any], attempt: CountedAttempt) -> None:
        """Forget the failures of the account, whose password was right, and take back the attempt for the address.

        In a known browser the account's failures elsewhere stay. Rows are locked in the same order as in
        `count_attempt`.
        """
        self._uncount(connection, _address_counter(attempt.address))
        *elsewhere, own = _counters(attempt.account)
        for counter in elsewhere:
            if counter in attempt.counted:
                self._uncount(connection, counter)
        connection.execute(_RESET, (self._hash(own),))

    def _count(self, connection: Connection[Any], counter: str, limit: ThrottleLimit) -> bool:
        """Count a failure. Return False, without counting it, if it is too early for another one."""
        values = {
            "key": self._hash(counter),
            "free": limit.free,
            "longest": limit.longest_wait_s,
            "forgotten": _RESET_AFTER_S,
        }
        return connection.execute(_COUNT, values).fetchone() is not None

    def _uncount(self, connection: Connection[Any], counter: str) -> None:
        connection.execute(_UNCOUNT, (self._hash(counter),))

    def _hash(self, what: str) -> bytes:
        return hmac.new(self._key, what.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def _address_counter(address: str) -> str:
    return f"address/{client_network(address)}"


def _counters(account: GuessedAccount) -> list[str]:
    """Return the names of the counters of an account. The last one decides whether a guess is accepted."""
    everywhere = f"account/{account.id}"
    return [everywhere, *([f"{everywhere}/{account.browser}"] if account.browser else [])]
