"""Compares the payment attempts with the charges in the sandbox's ledger, which is read over HTTP."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

import msgspec
import requests
from psycopg import Cursor
from requests.adapters import HTTPAdapter
from urllib3 import Retry

from mizan.reconciliation.checks import (
    CHECKS,
    MAX_FINDINGS,
    Finding,
    Findings,
    ReportProgress,
    collect_findings,
    recheck_until_settled,
)
from shared.domain.attempts.states import CHARGED, IN_FLIGHT, AttemptState
from shared.platform.database.pool import Database, fetch_scalar
from shared.platform.http_session import open_http_session
from shared.platform.settings import SandboxSettings
from shared.platform.strict_json import InvalidJsonError, parse_json_object
from shared.platform.tokens import sandbox_authorization

_TIMEOUT_S = 15
_PAGE_SIZE = 1000
_MAX_LEDGER_BYTES = 4 * 1024 * 1024
"""Ten times what a page of the sandbox's ledger has."""
_PROGRESS_EVERY = 10_000

_PAID = "paid"
_OWN_ID_VERSION = 7
"""The UUID version of our attempts; charges made at the sandbox by hand have other versions."""


class SandboxCharge(msgspec.Struct, frozen=True):
    """A charge as the ledger returns it."""

    id: str
    attempt: UUID
    intent: UUID
    amount: int
    currency: str
    method: str
    status: str


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    id: UUID
    intent: UUID
    state: AttemptState
    method: str
    amount: int
    """The amount of its intent."""
    currency: str


AttemptCharges = tuple[UUID, RecordedAttempt | None, Sequence[SandboxCharge]]


def pair_by_attempt(
    attempts: Iterable[RecordedAttempt], charges: Iterable[SandboxCharge]
) -> Iterator[AttemptCharges]:
    """Yield each attempt with its charges. Both inputs are ordered by the attempt's id; neither is held in memory."""
    grouped = groupby(charges, lambda charge: charge.attempt)
    of_charges: Iterator[tuple[UUID, list[SandboxCharge]]] = ((id_, list(group)) for id_, group in grouped)
    ours = iter(attempts)
    attempt, charged = next(ours, None), next(of_charges, None)
    while attempt is not None or charged is not None:
        if charged is None or (attempt is not None and attempt.id < charged[0]):
            assert attempt is not None
            yield attempt.id, attempt, ()
            attempt = next(ours, None)
        elif attempt is None or charged[0] < attempt.id:
            yield charged[0], None, charged[1]
            charged = next(of_charges, None)
        else:
            yield attempt.id, attempt, charged[1]
            attempt, charged = next(ours, None), next(of_charges, None)


def check_attempt(pair: AttemptCharges) -> Finding | None:
    """Return the fault of an attempt and its charges, if there is one."""
    id_, attempt, charges = pair
    paid = [charge for charge in charges if charge.status == _PAID]
    if len(paid) > 1:
        return _finding(
            "charges_once", id_, f"charges {', '.join(charge.id for charge in paid)} are all paid"
        )
    if attempt is not None:
        return _check_known_attempt(attempt, paid, charges)
    if paid and id_.version == _OWN_ID_VERSION:
        return _finding("charges_known", id_, f"charge {paid[0].id}: {_describe_charge(paid[0])}")
    return None


def _check_known_attempt(
    attempt: RecordedAttempt, paid: Sequence[SandboxCharge], charges: Sequence[SandboxCharge]
) -> Finding | None:
    """An attempt in progress has no fault: its status will be inquired."""
    is_paid = attempt.state in CHARGED
    stands = f"{attempt.state} on intent {attempt.intent}"
    if is_paid and not paid:
        said = charges[0].status if charges else "has no charge"
        return _finding("payments_charged", attempt.id, f"{stands}; the sandbox: {said}")
    if paid and not is_paid and attempt.state not in IN_FLIGHT:
        return _finding("charges_paid", attempt.id, f"{stands}; charge {paid[0].id} is paid")
    if is_paid and _describe_charge(paid[0]) != _describe_attempt(attempt):
        detail = f"charge {paid[0].id}: {_describe_charge(paid[0])}; here: {_describe_attempt(attempt)}"
        return _finding("charges_fit", attempt.id, detail)
    return None


def _finding(check: str, id_: UUID, detail: str) -> Finding:
    return Finding(CHECKS[check], str(id_), detail)


def _describe_charge(charge: SandboxCharge) -> str:
    return f"{charge.amount} {charge.currency} by {charge.method} for intent {charge.intent}"


def _describe_attempt(attempt: RecordedAttempt) -> str:
    return f"{attempt.amount} {attempt.currency} by {attempt.method} for intent {attempt.intent}"


FIRST_ID = UUID(int=0)


class LedgerUnavailableError(Exception):
    """The sandbox does not respond, or its response is not a ledger."""


class _LedgerPage(msgspec.Struct, frozen=True):
    charges: list[SandboxCharge]


class SandboxLedger:
    def __init__(self, sandbox: SandboxSettings) -> None:
        self._url = f"{sandbox.url}/charges"
        self._session = open_http_session()
        # A dropped connection must not end the audit: it only reads.
        self._session.mount(self._url, HTTPAdapter(max_retries=Retry(2, backoff_factor=0.2)))
        self._session.headers["Authorization"] = sandbox_authorization(sandbox.secret)

    def charges(self, until: UUID) -> Iterator[SandboxCharge]:
        """Yield all charges up to that attempt, ordered by attempt. Raises LedgerUnavailableError."""
        after = FIRST_ID
        while page := self._ask(after=after):
            for charge in page:
                if charge.attempt > until:
                    return
                yield charge
            after = page[-1].attempt

    def of_attempt(self, attempt: UUID) -> Sequence[SandboxCharge]:
        return self._ask(attempt=attempt)

    def close(self) -> None:
        self._session.close()

    def _ask(self, **query: UUID) -> list[SandboxCharge]:
        words = {name: str(value) for name, value in query.items()}
        try:
            answer = self._session.get(self._url, params=words, timeout=_TIMEOUT_S, allow_redirects=False)
            answer.raise_for_status()
            return msgspec.convert(parse_json_object(answer.content, _MAX_LEDGER_BYTES), _LedgerPage).charges
        except (requests.RequestException, InvalidJsonError, msgspec.MsgspecError) as error:
            raise LedgerUnavailableError(
                f"the sandbox's ledger cannot be read: {type(error).__name__}"
            ) from error


# If a provider charges one attempt twice, the second charge is stored as an attempt that the provider does not know.
_OURS = """
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.provider = 'sandbox' and not (t.state = 'duplicate' and t.reason is not distinct from 'charged again')"""
_COLUMNS = "select t.id, t.intent_uuid, t.state, t.method, i.amount, i.currency"
ATTEMPTS_PAGE_SQL = f"""
{_COLUMNS} {_OURS} and t.id > %(after)s and t.id <= %(until)s order by t.id limit {_PAGE_SIZE}"""
ATTEMPTS_BY_ID_SQL = f"{_COLUMNS} {_OURS} and t.id = any(%(ids)s) order by t.id"
_NOW = "select uuidv7()"


def reconcile_charges(
    database: Database, ledger: SandboxLedger, report_progress: ReportProgress
) -> tuple[Findings, int]:
    """Return what does not match, and the number of charges. Raises LedgerUnavailableError."""
    charges = 0

    def find_mismatches() -> Iterator[Finding]:
        nonlocal charges
        for number, pair in enumerate(_all_pairs(database, ledger), 1):
            charges += len(pair[2])
            if number % _PROGRESS_EVERY == 0:
                report_progress(f"the sandbox's ledger: {number} attempts")
            finding = check_attempt(pair)
            if finding is not None:
                yield finding

    def recheck(before: Findings) -> Findings:
        """Check the kept findings again. A check with more findings than were kept keeps its total if any remains."""
        ids = [UUID(finding.id) for finding in before.findings]
        again = collect_findings(filter(None, map(check_attempt, _pairs_of(database, ledger, ids))))
        cut = {name: total for name, total in before.totals.items() if total > MAX_FINDINGS}
        return Findings(
            again.findings, {**again.totals, **{name: cut[name] for name in cut if name in again.totals}}
        )

    return recheck_until_settled(collect_findings(find_mismatches()), recheck, report_progress), charges


def _all_pairs(database: Database, ledger: SandboxLedger) -> Iterator[AttemptCharges]:
    """Pair everything up to now. Both sides change meanwhile, so mismatches have to be re-checked."""
    with database.cursor() as cursor:
        until: UUID = fetch_scalar(cursor, _NOW)
    return pair_by_attempt(_attempts(database, until), ledger.charges(until))


def _pairs_of(database: Database, ledger: SandboxLedger, ids: Sequence[UUID]) -> Iterator[AttemptCharges]:
    """Read the ledger before the database: a payment is known there a moment earlier than here."""
    charges = {id_: ledger.of_attempt(id_) for id_ in ids}
    with database.cursor() as cursor:
        attempts = {attempt.id: attempt for attempt in _read(cursor, ATTEMPTS_BY_ID_SQL, {"ids": list(ids)})}
    return ((id_, attempts.get(id_), charges[id_]) for id_ in ids)


def _attempts(database: Database, until: UUID) -> Iterator[RecordedAttempt]:
    after = FIRST_ID
    while True:
        with database.cursor() as cursor:
            page = _read(cursor, ATTEMPTS_PAGE_SQL, {"after": after, "until": until})
        yield from page
        if len(page) < _PAGE_SIZE:
            return
        after = page[-1].id


def _read(cursor: Cursor[Any], statement: str, values: dict[str, object]) -> list[RecordedAttempt]:
    rows = cursor.execute(statement.encode(), values)
    return [RecordedAttempt(id_, intent, AttemptState(state), *rest) for id_, intent, state, *rest in rows]
