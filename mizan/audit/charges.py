"""Every attempt of ours beside its charge in the sandbox's ledger."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from psycopg import Cursor

from mizan.audit.again import Say, until_sure
from mizan.audit.checks import MOST_FINDINGS, Finding, Found, found
from mizan.audit.comparing import Attempt, Pair, judge, side_by_side
from mizan.audit.ledger import FIRST, Ledger
from shared.domain.attempts.states import AttemptState
from shared.platform.database.pool import Database, fetch_scalar

_A_PAGE = 1000
_TELL_EVERY = 10_000

# Where a provider has charged one attempt twice, the second charge is kept as an attempt that it does not know of.
_OURS = """
from payment_attempts as t join payment_intents as i on i.uuid = t.intent_uuid
where t.provider = 'sandbox' and not (t.state = 'duplicate' and t.reason is not distinct from 'charged again')"""
_COLUMNS = "select t.id, t.intent_uuid, t.state, t.method, i.amount, i.currency"
PAGE_SQL = f"""
{_COLUMNS} {_OURS} and t.id > %(after)s and t.id <= %(until)s order by t.id limit {_A_PAGE}"""
SOME_SQL = f"{_COLUMNS} {_OURS} and t.id = any(%(ids)s) order by t.id"
_NOW = "select uuidv7()"


def look_at_charges(database: Database, ledger: Ledger, say: Say) -> tuple[Found, int]:
    """What does not fit, and how many charges there are."""
    charges = 0

    def judged() -> Iterator[Finding]:
        nonlocal charges
        for number, pair in enumerate(_all_pairs(database, ledger), 1):
            charges += len(pair[2])
            if number % _TELL_EVERY == 0:
                say(f"the sandbox's ledger: {number} attempts")
            finding = judge(pair)
            if finding is not None:
                yield finding

    def look_again(before: Found) -> Found:
        """At those that are known; where there are more than that, as many are taken to be wrong still."""
        ids = [UUID(finding.id) for finding in before.findings]
        again = found(filter(None, map(judge, _pairs_of(database, ledger, ids))))
        cut = {name: total for name, total in before.totals.items() if total > MOST_FINDINGS}
        return Found(
            again.findings, {**again.totals, **{name: cut[name] for name in cut if name in again.totals}}
        )

    return until_sure(found(judged()), look_again, say), charges


def _all_pairs(database: Database, ledger: Ledger) -> Iterator[Pair]:
    """All until now. Both sides move on meanwhile: what does not fit has to be looked at again."""
    with database.cursor() as cursor:
        until: UUID = fetch_scalar(cursor, _NOW)
    return side_by_side(_attempts(database, until), ledger.charges(until))


def _pairs_of(database: Database, ledger: Ledger, ids: Sequence[UUID]) -> Iterator[Pair]:
    """The ledger is asked first: what is paid there is known here a moment later."""
    charges = {id_: ledger.of_attempt(id_) for id_ in ids}
    with database.cursor() as cursor:
        attempts = {attempt.id: attempt for attempt in _read(cursor, SOME_SQL, {"ids": list(ids)})}
    return ((id_, attempts.get(id_), charges[id_]) for id_ in ids)


def _attempts(database: Database, until: UUID) -> Iterator[Attempt]:
    after = FIRST
    while True:
        with database.cursor() as cursor:
            page = _read(cursor, PAGE_SQL, {"after": after, "until": until})
        yield from page
        if len(page) < _A_PAGE:
            return
        after = page[-1].id


def _read(cursor: Cursor[Any], statement: str, values: dict[str, object]) -> list[Attempt]:
    rows = cursor.execute(statement.encode(), values)
    return [Attempt(id_, intent, AttemptState(state), *rest) for id_, intent, state, *rest in rows]
