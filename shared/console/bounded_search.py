"""A search that no index can answer: rows are read newest first, a bounded number of them, for a bounded time.

The embedded PostgreSQL has no `pg_trgm`, and an index for parts of words would make every create dearer. So a search
looks at the rows of a period, and says how far back it looked. What an index finds is added to that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from time import monotonic
from typing import Generic, TypeVar
from uuid import UUID

from shared.console.days import first_uuid_at, local_day, start_of_day
from shared.platform.database.pool import Database, StatementTimeoutError, fetch_scalar
from shared.platform.uuids import uuid7_datetime

PERIOD = timedelta(days=30)
"""How far back a search looks if nobody chose a first day."""
BATCH = 1000
"""How many rows one statement looks at."""
MOST_LOOKED_AT = 20_000
"""How many rows a page looks at."""
TIME_LIMIT_S = 2.0
"""After this time no further batch is read."""

T = TypeVar("T")
Batch = tuple[Sequence[UUID], UUID | None]
"""The ids that match, newest first; and the last id that was looked at, or None if there are no more rows."""


@dataclass(frozen=True, slots=True)
class Scan:
    matches: list[UUID]
    stopped_at: UUID | None
    """The last id that was looked at; None if all rows of the period were, or enough matches were found."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    since: date
    """The first day that is looked at."""
    before: UUID | None
    """The page has ids before this one; None for the first page."""
    size: int
    shows_all_found: bool = False
    """Whether the first page shows what an index found, also if the scan did not get that far."""


@dataclass(frozen=True, slots=True)
class LookedBack:
    """How far back a search looked. A page has it only where its list ends."""

    to: datetime
    is_complete: bool
    """Whether it looked at the whole period."""
    earlier: date | None
    """A first day for looking further back; None if there are no older rows."""


@dataclass(frozen=True, slots=True)
class SearchPage(Generic[T]):
    rows: list[T]
    next_before: UUID | None
    """The next page has ids before this one; None if this is the last page."""
    looked_back: LookedBack | None


def first_day(database: Database, since: date | None, until: date | None) -> date:
    """Return the first day to look at: the one that was chosen, or one a PERIOD before the last day."""
    if since is not None:
        return since
    with database.cursor() as cursor:
        today = local_day(fetch_scalar(cursor, "select mizan_now()"))
    return min(until or today, today) - PERIOD


def scan_newest_first(read_batch: Callable[[UUID], Batch], before: UUID, size: int) -> Scan:
    """Read batch after batch until there are more than `size` matches, or no more rows, or a limit is reached.

    Raises StatementTimeoutError if not even the first batch could be read.
    """
    deadline = monotonic() + TIME_LIMIT_S
    matches: list[UUID] = []
    looked_at = 0
    while True:
        try:
            found, last = read_batch(before)
        except StatementTimeoutError:
            if not looked_at:
                raise
            return Scan(matches, before)
        matches += found
        looked_at += BATCH
        if last is None or len(matches) > size:
            return Scan(matches, None)
        before = last
        if looked_at >= MOST_LOOKED_AT or monotonic() > deadline:
            return Scan(matches, before)


def make_page(
    rows: Sequence[T],
    id_of: Callable[[T], UUID],
    scan: Scan,
    request: PageRequest,
    has_older: Callable[[UUID], bool],
) -> SearchPage[T]:
    """Make a page of the rows that the scan or an index found, newest first.

    If the scan stopped early, rows older than that come on later pages, because others may belong between them. A first
    page shows them all the same, as far as it has room, if the request says so: who searches for an old reference in
    full must see it at once.
    """
    size = request.size
    stop = scan.stopped_at
    certain = rows if stop is None else [row for row in rows if id_of(row) >= stop]
    if len(certain) > size:
        return SearchPage(list(certain[:size]), id_of(certain[size - 1]), None)
    if stop is not None:
        shown = rows[:size] if request.shows_all_found and request.before is None else certain
        return SearchPage(list(shown), stop, LookedBack(uuid7_datetime(stop), False, None))
    begin = start_of_day(request.since)
    earlier = request.since - PERIOD if has_older(first_uuid_at(begin)) else None
    return SearchPage(list(rows), None, LookedBack(begin, True, earlier))
