"""The history of a run: what clients, receivers and the bank saw, one JSON object a line.

The judge reads nothing else. Times are seconds since 1970 on the machine's clock; the product's clock is that plus all
ClockMoved so far. A request has two times: `began_at`, when it was sent, and `at`, when its answer was complete or it
was given up. What it caused happened in between, or later if it was given up.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class Record:
    """Anything that happened in a run."""

    at: float


@dataclass(frozen=True, kw_only=True)
class RunStarted(Record):
    seed: int
    seconds: int
    brokers: int
    retry_delays: tuple[float, ...]
    """Seconds after each failed try except the ninth."""
    settle_seconds: int
    """How long after LoadStopped everything may take to settle."""
    commit: str


@dataclass(frozen=True, kw_only=True)
class LoadStopped(Record):
    """All faults are over, and no client starts anything new."""


@dataclass(frozen=True, kw_only=True)
class SettlingEnded(Record):
    settled: bool
    waits_for: tuple[str, ...]
    """What had not settled when the time was up."""


@dataclass(frozen=True, kw_only=True)
class FaultBegan(Record):
    number: int
    fault: str
    """Its kind, for example kill or cut."""
    target: str
    """The process, link, topic or consumer group."""
    details: str


@dataclass(frozen=True, kw_only=True)
class FaultEnded(Record):
    number: int
    problem: str | None
    """Why the fault could not be made or ended as planned; None if it was."""


@dataclass(frozen=True, kw_only=True)
class ClockMoved(Record):
    """The product's clock moved forward at some time between `began_at` and `at`."""

    began_at: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ApplicationRegistered(Record):
    application: str
    webhook_url: str | None
    secret: str
    receiver_lives: bool
    """Whether its receiver answers 2xx again at the end of the run. If not, its deliveries may fail."""


@dataclass(frozen=True, kw_only=True)
class SecretRolled(Record):
    """The new secret is used for deliveries that are created after `at`; in between, either."""

    application: str
    began_at: float
    secret: str | None
    """None if the request got no answer, so that the secret is not known."""


@dataclass(frozen=True, kw_only=True)
class WebhookUrlChanged(Record):
    application: str
    began_at: float
    webhook_url: str
    acknowledged: bool


@dataclass(frozen=True, kw_only=True)
class WebhooksPaused(Record):
    application: str
    began_at: float
    paused: bool
    """False: resumed."""
    acknowledged: bool


@dataclass(frozen=True, kw_only=True)
class IntentSeen:
    """The fields of an intent in a response of the API."""

    uuid: str
    merchant_reference: str
    amount: int
    status: str
    expires_at: float
    updated_at: float


@dataclass(frozen=True, kw_only=True)
class CreateAnswered(Record):
    application: str
    began_at: float
    merchant_reference: str
    amount: int
    http_status: int | None
    """None if there was no complete answer."""
    intent: IntentSeen | None
    expires_at: float | None = None
    """As requested; None if the request had none, so that the default holds."""


@dataclass(frozen=True, kw_only=True)
class RetrieveAnswered(Record):
    application: str
    began_at: float
    uuid: str
    http_status: int | None
    intent: IntentSeen | None
    after_settling: bool


@dataclass(frozen=True, kw_only=True)
class CustomerClicked(Record):
    """A customer sent the payment form, or a code, at the checkout."""

    uuid: str
    began_at: float
    click: str
    """pay or code."""
    method: str
    script: str
    """What the sandbox was to do: a name of its scripted outcomes."""
    http_status: int | None
    page: str | None
    """What the page said: paid, declined, code, confirming, expired, form, error; None if there was no page."""


@dataclass(frozen=True, kw_only=True)
class ChargeSettledLate(Record):
    """The sandbox was told that a declined charge was paid after all."""

    uuid: str
    began_at: float
    charge: str
    acknowledged: bool


@dataclass(frozen=True, kw_only=True)
class WebhookReceived(Record):
    """A request at a receiver. `at` is when its body was complete."""

    application: str
    """Of the URL that it came to."""
    url: str
    connection: int
    """The number of its TCP connection, at this receiver."""
    signature: str | None
    body: str
    """As latin-1, so that no byte is lost."""
    answer: str
    """What the receiver did: an HTTP status, or hang, close, slow."""


@dataclass(frozen=True, kw_only=True)
class ResendRequested(Record):
    application: str
    began_at: float
    delivery: str
    acknowledged: bool


@dataclass(frozen=True, kw_only=True)
class ChargeAtBank(Record):
    """A charge in the sandbox's ledger after settling."""

    charge: str
    uuid: str
    attempt: str
    amount: int
    method: str
    status: str
    """paid, declined or needs_code."""


@dataclass(frozen=True, kw_only=True)
class DuplicateReported(Record):
    """A charge that the product reports as a duplicate, after settling."""

    uuid: str
    attempt: str


@dataclass(frozen=True, kw_only=True)
class DeliveryShown(Record):
    """A delivery as the dashboard lists it, after settling."""

    delivery: str
    application: str
    uuid: str
    event: str
    status: str
    scheduled_tries: int


@dataclass(frozen=True, kw_only=True)
class TryShown(Record):
    """A try of a delivery as the dashboard lists it, after settling."""

    delivery: str
    number: int
    scheduled: bool
    """False for resends."""
    began_at: float
    """On the product's clock."""
    result: str
    """The HTTP status, or the name of a failure such as timeout."""


@dataclass(frozen=True, kw_only=True)
class OutboxCounted(Record):
    """After settling."""

    rows: int


@dataclass(frozen=True, kw_only=True)
class AuditEnded(Record):
    """`mizan audit` after settling."""

    exit_status: int
    findings: tuple[str, ...]


_KINDS: dict[str, type[Record]] = {kind.__name__: kind for kind in Record.__subclasses__()}


class History:
    """Appends records to a file. Safe to use from several threads; each record is in the file when `add` returns."""

    _SEPARATORS: ClassVar = (",", ":")

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="ascii", buffering=1)
        self._lock = Lock()

    def add(self, record: Record) -> None:
        line = json.dumps({"kind": type(record).__name__, **asdict(record)}, separators=self._SEPARATORS)
        with self._lock:
            self._file.write(line + "\n")

    def close(self) -> None:
        self._file.close()


def read_history(path: Path) -> Iterator[Record]:
    """Yield the records in the order in which they were added.

    Raises ValueError for a line that is not a record, or a last one that is cut off because the run was killed.
    """
    with path.open(encoding="ascii") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                raise ValueError(
                    f"{path}: line {number}, the last, is cut off: the run was killed as it wrote it"
                )
            try:
                yield _parse(json.loads(line))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                problem = f"{path}: line {number} is not a record of a history: {error}"
                raise ValueError(problem) from error


def _parse(fields: dict[str, object]) -> Record:
    kind = _KINDS[str(fields.pop("kind"))]
    seen = fields.get("intent")
    if isinstance(seen, dict):
        fields["intent"] = IntentSeen(**seen)
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return kind(**{**fields, **lists})  # type: ignore[arg-type]  # the fields of a record that we wrote
