"""Writes what clients and receivers saw into the history, and counts it for the live line."""

from collections import Counter
from dataclasses import dataclass

from chaos.history import (
    ChargeSettledLate,
    CreateAnswered,
    CustomerClicked,
    History,
    Record,
    ResendRequested,
    RetrieveAnswered,
    SecretRolled,
    WebhookReceived,
    WebhooksPaused,
    WebhookUrlChanged,
)

_ACTIONS = (ChargeSettledLate, ResendRequested, SecretRolled, WebhooksPaused, WebhookUrlChanged)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCounters:
    """What the load has done so far."""

    orders: int
    """Orders that were started."""
    skipped: int
    """Orders that were not started because too many were running."""
    creates: int
    acknowledged: int
    """Creates that were answered with 201."""
    clicks: int
    payments: int
    """Visits that ended with a receipt."""
    retrievals: int
    receipts: int
    """Webhooks at the receivers."""
    actions: int
    """Resends, secret rolls, URL changes, pauses, resumes and late settlements."""
    lost: int
    """Requests without a complete answer."""
    unexpected: int
    """Orders that ended with an error of the load itself."""
    cpu_s: float
    """Processor time of the load."""


class Recorder:
    """Used by the thread of the load only; counters may be read from others."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._counts: Counter[str] = Counter()

    def add(self, record: Record) -> None:
        self._history.add(record)
        self._counts[type(record).__name__] += 1
        if isinstance(record, CreateAnswered | RetrieveAnswered | CustomerClicked):
            self._counts["lost"] += record.http_status is None
        if isinstance(record, CreateAnswered) and record.http_status == 201:
            self._counts["acknowledged"] += 1

    def count(self, what: str) -> None:
        self._counts[what] += 1

    def counters(self, cpu_s: float) -> LoadCounters:
        counts = self._counts
        return LoadCounters(
            orders=counts["orders"],
            skipped=counts["skipped"],
            creates=counts[CreateAnswered.__name__],
            acknowledged=counts["acknowledged"],
            clicks=counts[CustomerClicked.__name__],
            payments=counts["payments"],
            retrievals=counts[RetrieveAnswered.__name__],
            receipts=counts[WebhookReceived.__name__],
            actions=sum(counts[kind.__name__] for kind in _ACTIONS),
            lost=counts["lost"],
            unexpected=counts["unexpected"],
            cpu_s=cpu_s,
        )
