"""Indexes a history by what it is about: one pass over its records, which may be many and in any order."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from chaos.history import (
    ApplicationRegistered,
    AuditEnded,
    ChargeAtBank,
    ChargeSettledLate,
    ClockMoved,
    CreateAnswered,
    CustomerClicked,
    DeliveryShown,
    DuplicateReported,
    FaultBegan,
    FaultEnded,
    IntentSeen,
    LoadStopped,
    OutboxCounted,
    Record,
    ResendRequested,
    RetrieveAnswered,
    RunStarted,
    SecretRolled,
    SettlingEnded,
    TryShown,
    WebhookReceived,
    WebhooksPaused,
    WebhookUrlChanged,
)
from chaos.judge.applications import Application
from chaos.judge.clock import ProductClock
from chaos.judge.faults import FaultPeriods
from chaos.judge.receipts import Receipt, read_receipt

if TYPE_CHECKING:
    from chaos.judge.try_matching import MatchedTries


@dataclass(frozen=True, slots=True)
class Sighting:
    """An answer of the API that showed an intent."""

    began_at: float
    at: float
    seen: IntentSeen


@dataclass(slots=True)
class Intent:
    """An intent that a client knows, because an answer of the API showed it."""

    uuid: str
    application: str
    is_acknowledged: bool = False
    """Whether a create was answered with it. Otherwise it is only known from a webhook, after a lost answer."""
    sightings: list[Sighting] = field(default_factory=list)
    final: IntentSeen | None = None
    """As it was after settling."""
    final_began_at: float = inf

    @property
    def first(self) -> IntentSeen:
        return self.sightings[0].seen

    @property
    def known_since(self) -> float:
        return min(sighting.at for sighting in self.sightings)


@dataclass(slots=True)
class Run:
    """Everything in a history, by subject."""

    records: int = 0
    started: list[RunStarted] = field(default_factory=list)
    load_stopped: LoadStopped | None = None
    settling: SettlingEnded | None = None
    audit: AuditEnded | None = None
    outboxes: list[OutboxCounted] = field(default_factory=list)
    began: list[FaultBegan] = field(default_factory=list)
    ended: list[FaultEnded] = field(default_factory=list)
    moves: list[ClockMoved] = field(default_factory=list)
    applications: dict[str, Application] = field(default_factory=dict)
    creates: list[CreateAnswered] = field(default_factory=list)
    retrieves: list[RetrieveAnswered] = field(default_factory=list)
    intents: dict[str, Intent] = field(default_factory=dict)
    clicks: dict[str, list[CustomerClicked]] = field(default_factory=lambda: defaultdict(list))
    late_settlements: dict[str, list[ChargeSettledLate]] = field(default_factory=lambda: defaultdict(list))
    charges: dict[str, list[ChargeAtBank]] = field(default_factory=lambda: defaultdict(list))
    duplicates: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Attempts that are reported as duplicates, by intent."""
    receipts: list[Receipt] = field(default_factory=list)
    """By time."""
    receipts_of: dict[str, list[Receipt]] = field(default_factory=lambda: defaultdict(list))
    """By id of the delivery, then by time. Those whose body cannot be read are left out."""
    deliveries: dict[str, DeliveryShown] = field(default_factory=dict)
    listed: Counter[str] = field(default_factory=Counter)
    """How often each delivery was listed."""
    tries: dict[str, list[TryShown]] = field(default_factory=lambda: defaultdict(list))
    """By delivery, then by number."""
    resends: dict[str, list[ResendRequested]] = field(default_factory=lambda: defaultdict(list))
    matched_tries: dict[str, "MatchedTries"] = field(default_factory=dict)
    """Filled by match_tries."""
    clock: ProductClock = field(default_factory=lambda: ProductClock(()))
    faults: FaultPeriods = field(default_factory=lambda: FaultPeriods((), ()))

    @property
    def retry_delays(self) -> tuple[float, ...]:
        return self.started[0].retry_delays if self.started else ()


def index_run(records: Iterable[Record]) -> Run:
    """Return all records of a history by subject. Raises ValueError for a history that contradicts itself."""
    run = Run()
    webhooks: list[WebhookReceived] = []
    settings: list[SecretRolled | WebhookUrlChanged | WebhooksPaused] = []
    for record in records:
        run.records += 1
        match record:
            case WebhookReceived():
                webhooks.append(record)
            case SecretRolled() | WebhookUrlChanged() | WebhooksPaused():
                settings.append(record)
            case CreateAnswered() | RetrieveAnswered():
                _add_answer(run, record)
            case ApplicationRegistered():
                run.applications[record.application] = Application(record)
            case _:
                _add(run, record)
    for setting in settings:
        if setting.application not in run.applications:
            raise ValueError(f"application {setting.application} was changed, but never registered")
        run.applications[setting.application].add(setting)
    _complete(run, webhooks)
    return run


def _add_answer(run: Run, answer: CreateAnswered | RetrieveAnswered) -> None:
    if isinstance(answer, CreateAnswered):
        run.creates.append(answer)
    else:
        run.retrieves.append(answer)
    if answer.intent is None or answer.http_status not in (200, 201):
        return
    uuid = answer.intent.uuid
    intent = run.intents.get(uuid)
    if intent is None:
        intent = run.intents[uuid] = Intent(uuid, answer.application)
    if isinstance(answer, CreateAnswered):
        intent.is_acknowledged = True
        if answer.http_status == 201:
            intent.application = answer.application
    intent.sightings.append(Sighting(answer.began_at, answer.at, answer.intent))
    if isinstance(answer, RetrieveAnswered) and answer.after_settling:
        intent.final, intent.final_began_at = answer.intent, answer.began_at


def _add(run: Run, record: Record) -> None:
    match record:
        case CustomerClicked():
            run.clicks[record.uuid].append(record)
        case ChargeSettledLate():
            run.late_settlements[record.uuid].append(record)
        case ChargeAtBank():
            run.charges[record.uuid].append(record)
        case DuplicateReported():
            run.duplicates[record.uuid].add(record.attempt)
        case DeliveryShown():
            run.deliveries[record.delivery] = record
            run.listed[record.delivery] += 1
        case TryShown():
            run.tries[record.delivery].append(record)
        case ResendRequested():
            run.resends[record.delivery].append(record)
        case _:
            _add_phase(run, record)


def _add_phase(run: Run, record: Record) -> None:
    match record:
        case RunStarted():
            run.started.append(record)
        case LoadStopped():
            run.load_stopped = record
        case SettlingEnded():
            run.settling = record
        case AuditEnded():
            run.audit = record
        case OutboxCounted():
            run.outboxes.append(record)
        case FaultBegan():
            run.began.append(record)
        case FaultEnded():
            run.ended.append(record)
        case ClockMoved():
            run.moves.append(record)


def _complete(run: Run, webhooks: list[WebhookReceived]) -> None:
    run.clock = ProductClock(run.moves)
    stopped_at = run.load_stopped.at if run.load_stopped else inf
    run.faults = FaultPeriods(run.began, run.ended, run.moves, stopped_at)
    for intent in run.intents.values():
        intent.sightings.sort(key=lambda sighting: sighting.at)
    for tries in run.tries.values():
        tries.sort(key=lambda one: one.number)
    webhooks.sort(key=lambda webhook: webhook.at)
    for webhook in webhooks:
        receipt = read_receipt(webhook, run.applications.get(webhook.application))
        run.receipts.append(receipt)
        if receipt.id is not None:
            run.receipts_of[receipt.id].append(receipt)
    # A look-up of a missing key must not add one while the rules read.
    for name in ("clicks", "late_settlements", "charges", "duplicates", "receipts_of", "tries", "resends"):
        getattr(run, name).default_factory = None
