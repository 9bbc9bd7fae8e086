"""What an application's settings can have been when: its secrets, its webhook URLs, and whether it was paused.

A change that was acknowledged took effect between `began_at` and `at`. One without an answer took effect at any time
after `began_at`, or never.
"""

import hmac
from dataclasses import dataclass
from math import inf

from chaos.history import ApplicationRegistered, SecretRolled, WebhooksPaused, WebhookUrlChanged

LOST_REQUEST_SECONDS = 60.0
"""A request that was given up takes effect within this time, or never: no fault holds it back for longer."""


@dataclass(frozen=True, slots=True)
class Period:
    """The times at which a setting can have had a value."""

    value: str | None
    since: float
    until: float

    def overlaps(self, begin: float, end: float) -> bool:
        return self.since <= end and self.until >= begin


@dataclass(frozen=True, slots=True)
class _Change:
    value: str | None
    began_at: float
    at: float
    acknowledged: bool


class Application:
    """An application, with all changes of its settings."""

    def __init__(self, registered: ApplicationRegistered) -> None:
        self.name = registered.application
        self.receiver_lives = registered.receiver_lives
        self._secrets = [_Change(registered.secret, -inf, registered.at, acknowledged=True)]
        self._urls = [_Change(registered.webhook_url, -inf, registered.at, acknowledged=True)]
        self._pauses: list[WebhooksPaused] = []
        self._keys: dict[str, hmac.HMAC] = {}
        self._periods: dict[str, list[Period]] = {}

    def add(self, setting: SecretRolled | WebhookUrlChanged | WebhooksPaused) -> None:
        self._periods.clear()
        match setting:
            case SecretRolled():
                known = setting.secret is not None
                self._secrets.append(_Change(setting.secret, setting.began_at, setting.at, known))
            case WebhookUrlChanged():
                url, acknowledged = setting.webhook_url, setting.acknowledged
                self._urls.append(_Change(url, setting.began_at, setting.at, acknowledged))
            case WebhooksPaused():
                self._pauses.append(setting)

    @property
    def secrets(self) -> list[Period]:
        """The known secrets, the newest first."""
        if "secrets" not in self._periods:
            known = [period for period in _periods(self._secrets) if period.value is not None]
            self._periods["secrets"] = sorted(known, key=lambda period: -period.since)
        return self._periods["secrets"]

    @property
    def urls(self) -> list[Period]:
        if "urls" not in self._periods:
            self._periods["urls"] = _periods(self._urls)
        return self._periods["urls"]

    @property
    def unknown_secret_since(self) -> float:
        """When the first roll without an answer began: from then on, a secret may be in use that nobody knows."""
        return min((roll.began_at for roll in self._secrets if roll.value is None), default=inf)

    @property
    def surely_has_url_since(self) -> float:
        """From when on a change is owed to the receiver: events from before the URL was set are not sent (§6.1)."""
        return min((url.at for url in self._urls if url.value and url.acknowledged), default=inf)

    def may_be_paused_between(self, begin: float, end: float) -> bool:
        """Return whether its webhooks can have been paused at some time between `begin` and `end`."""
        resumed = [change for change in self._pauses if not change.paused and change.acknowledged]
        return any(
            pause.began_at <= end
            and min((one.at for one in resumed if one.began_at >= pause.at), default=inf) >= begin
            for pause in self._pauses
            if pause.paused
        )

    @property
    def may_be_paused_at_end(self) -> bool:
        """Return whether its webhooks were not surely running when the run ended."""
        pauses = [change for change in self._pauses if change.paused]
        resumed = [change for change in self._pauses if not change.paused and change.acknowledged]
        if not pauses or not resumed:
            return bool(pauses)
        last = max(resumed, key=lambda change: change.began_at)
        return any(
            pause.at + (0 if pause.acknowledged else LOST_REQUEST_SECONDS) > last.began_at for pause in pauses
        )

    def find_secret(self, body: bytes, signature: str) -> Period | None:
        """Return the secret that this body was signed with (§6.4), or None if it is none of those that are known."""
        for period in self.secrets:
            assert period.value is not None
            key = self._keys.get(period.value)
            if key is None:
                key = self._keys[period.value] = hmac.new(period.value.encode(), digestmod="sha256")
            mac = key.copy()
            mac.update(body)
            if mac.hexdigest() == signature:
                return period
        return None


def _periods(changes: list[_Change]) -> list[Period]:
    """Return when each value can have been in force: until a later change was surely made."""
    acknowledged = [change for change in changes if change.acknowledged]
    return [
        Period(change.value, change.began_at, min(_ends(change, acknowledged), default=inf))
        for change in changes
    ]


def _ends(change: _Change, acknowledged: list[_Change]) -> list[float]:
    if not change.acknowledged:
        return []
    return [other.at for other in acknowledged if other.began_at >= change.at]
