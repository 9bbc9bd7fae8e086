"""Slows down who guesses passwords: by account and by address, whether or not there is such an account.

A try is counted before the password is looked at, so that many at one moment do not slip through. What is counted
stands in the database only as a keyed hash.
"""

import hashlib
import hmac
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any

from psycopg import Connection

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
    """Too many sign-ins have failed; nothing was looked at."""


class SignInThrottle:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def count_attempt(self, connection: Connection[Any], account: str, address: str) -> None:
        """Raises SlowDownError, whatever the password is."""
        self._count(connection, f"address/{_network(address)}", ADDRESS)
        self._count(connection, f"account/{account}", ACCOUNT)

    def record_success(
        self, connection: Connection[Any], account: str, address: str, *, resets_account: bool
    ) -> None:
        """Take back the attempt that `count_attempt` counted, because the password was right.

        `resets_account` also forgets the account's earlier failures. The address keeps its other failures, so that
        one known password does not pay for guessing others. Rows are locked in the same order as in `count_attempt`.
        """
        connection.execute(_UNCOUNT, (self._hash(f"address/{_network(address)}"),))
        forgive = _RESET if resets_account else _UNCOUNT
        connection.execute(forgive, (self._hash(f"account/{account}"),))

    def _count(self, connection: Connection[Any], what: str, limit: ThrottleLimit) -> None:
        values = {
            "key": self._hash(what),
            "free": limit.free,
            "longest": limit.longest_wait_s,
            "forgotten": _RESET_AFTER_S,
        }
        if connection.execute(_COUNT, values).fetchone() is None:
            raise SignInThrottledError

    def _hash(self, what: str) -> bytes:
        return hmac.new(self._key, what.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def _network(address: str) -> str:
    """Whoever has an IPv6 address has 2^64 of them."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or IPv6Network((int(ip), 64), strict=False))
