"""Bulk replays: many dead letters are replayed batch by batch, the oldest first, by the scheduler or the command line.

The position of a run is stored together with the replays. So after a crash the run continues there, and of two
workers one does it. Dead letters that arrive meanwhile are not part of the run.
"""

import logging
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.domain.dead_letters.queries import StoredDeadLetter, parse_dead_letter
from shared.domain.dead_letters.republish import (
    DeadLetterPublisher,
    OriginNotConsumedError,
    count_replayable,
    open_publisher,
    replay_stored,
    replayable_topics,
    select_replayable,
)
from shared.domain.dead_letters.topic_reader import open_topic_reader
from shared.domain.topics import DEAD_LETTERS
from shared.platform.database.pool import Database
from shared.platform.errors import RefusedError
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings

_log = logging.getLogger(__name__)
BATCH = 100
BATCH_EVERY_S = 1.0
"""Together they limit a run to about 100 a second."""
_BATCH_LIMIT_S = 5.0
"""Limits the transaction if Kafka is slow."""
IDLE_S = 1.0


@dataclass(frozen=True, slots=True)
class ReplayRun:
    id: UUID
    actor: str
    origin: str | None
    """Only dead letters from this topic; None for all."""
    found: int
    replayed: int
    refused: int
    """How many could not be replayed."""
    created_at: datetime
    finished_at: datetime | None
    outcome: str | None
    """`done` or `stopped`; None while it is running."""


@dataclass(frozen=True, slots=True)
class _ActiveRun:
    id: UUID
    actor: str
    origin: str | None
    processed_offset: int
    final_offset: int


@dataclass(slots=True)
class _BatchProgress:
    processed_offset: int
    replayed: int = 0
    refused: int = 0
    error: KafkaUnavailableError | None = None


class NothingToReplayError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there are no dead letters left to replay")


class ReplayInProgressError(RefusedError):
    """Another bulk replay is running."""

    def __init__(self, active_run_id: UUID) -> None:
        super().__init__("dead letters are already being replayed; wait until that has ended, or stop it")
        self.active_run_id = active_run_id


class ReplayRunNotFoundError(RefusedError):
    def __init__(self, run_id: UUID) -> None:
        super().__init__(f"there is no replay {run_id}")


_GET = """
select id, actor, origin, found, replayed, refused, created_at, finished_at, outcome
from dead_letter_bulk_replays where id = %s"""
_LATEST = """
select id, actor, origin, found, replayed, refused, created_at, finished_at, outcome
from dead_letter_bulk_replays order by created_at desc limit 1"""
_SELECT_ACTIVE = "select id from dead_letter_bulk_replays where finished_at is null"
_INSERT = """
insert into dead_letter_bulk_replays (id, actor, origin, final_offset, found)
values (%(id)s, %(actor)s, %(origin)s, %(last)s, %(found)s) on conflict do nothing"""
_STOP = """
update dead_letter_bulk_replays set finished_at = mizan_now(), outcome = 'stopped'
where id = %s and finished_at is null"""
_CLAIM = """
select id, actor, origin, processed_offset, final_offset from dead_letter_bulk_replays
where finished_at is null for update skip locked"""
_ADVANCE = """
update dead_letter_bulk_replays
set processed_offset = %(processed_offset)s, replayed = replayed + %(replayed)s, refused = refused + %(refused)s,
    finished_at = case when %(is_done)s then mizan_now() end, outcome = case when %(is_done)s then 'done' end
where id = %(id)s"""


def start_replay_run(
    connection: Connection[Any], settings: KafkaSettings, run_id: UUID, origin: str | None, actor: Actor
) -> ReplayRun:
    """Start a run; repeating the call with the same `run_id` returns the first one.

    Counts the dead letters first, which can take seconds. Of more than MAX_RUN_SIZE a run takes the oldest. Raises
    OriginNotConsumedError, NothingToReplayError, ReplayInProgressError and KafkaUnavailableError.
    """
    if origin is not None and origin not in replayable_topics():
        raise OriginNotConsumedError(origin)
    known = _find_run(connection, run_id)
    if known is not None:
        return known
    _check_no_active_run(connection)
    seen = count_replayable(connection, settings, origin)
    if seen.count == 0:
        raise NothingToReplayError
    values = {"id": run_id, "actor": actor.name, "origin": origin, "last": seen.last, "found": seen.count}
    if connection.execute(_INSERT, values).rowcount == 0:
        known = _find_run(connection, run_id)
        if known is not None:
            return known
        _check_no_active_run(connection)
    else:
        details: AuditDetails = {"run": str(run_id), "topic": origin, "count": seen.count}
        add_audit_entry(connection, actor, Action.DEAD_LETTERS_REPLAYED, details=details)
    return get_replay_run(connection, run_id)


def get_replay_run(connection: Connection[Any], run_id: UUID) -> ReplayRun:
    found = _find_run(connection, run_id)
    if found is None:
        raise ReplayRunNotFoundError(run_id)
    return found


def latest_replay_run(connection: Connection[Any]) -> ReplayRun | None:
    with connection.cursor(row_factory=class_row(ReplayRun)) as cursor:
        return cursor.execute(_LATEST).fetchone()


def stop_replay_run(connection: Connection[Any], run_id: UUID, actor: Actor) -> bool:
    """Stop a run. Return False if it had already ended."""
    if connection.execute(_STOP, (run_id,)).rowcount == 0:
        get_replay_run(connection, run_id)
        return False
    details: AuditDetails = {"run": str(run_id), "count": get_replay_run(connection, run_id).replayed}
    add_audit_entry(connection, actor, Action.REPLAY_STOPPED, details=details)
    return True


def replay_batch(database: Database, settings: KafkaSettings) -> float:
    """Replay a batch of the running run, if there is one. Return the seconds until the next call.

    If Kafka fails in the middle, the replays so far are stored and KafkaUnavailableError is raised.
    """
    began = monotonic()
    with database.transaction() as connection:
        with connection.cursor(row_factory=class_row(_ActiveRun)) as cursor:
            run = cursor.execute(_CLAIM).fetchone()
        if run is None:
            return IDLE_S
        progress = _replay_next(connection, settings, run)
        values = {
            "id": run.id,
            "processed_offset": progress.processed_offset,
            "replayed": progress.replayed,
            "refused": progress.refused,
            "is_done": progress.processed_offset >= run.final_offset,
        }
        connection.execute(_ADVANCE, values)
    if progress.error is not None:
        raise progress.error
    return max(0.0, BATCH_EVERY_S - (monotonic() - began))


def _replay_next(connection: Connection[Any], settings: KafkaSettings, run: _ActiveRun) -> _BatchProgress:
    deadline = monotonic() + _BATCH_LIMIT_S
    progress = _BatchProgress(run.processed_offset)
    with open_topic_reader(settings, DEAD_LETTERS) as reader:
        records = reader.read_from(run.processed_offset + 1, run.final_offset + 1, BATCH)
    replayable = select_replayable(
        connection, settings, [parse_dead_letter(one) for one in records], run.origin
    )
    with open_publisher(settings) as publisher:
        for letter in replayable:
            try:
                _replay_one(connection, publisher, letter, run, progress)
            except KafkaUnavailableError as error:
                progress.error = error
                return progress
            progress.processed_offset = letter.offset
            if monotonic() > deadline:
                return progress
    # A short batch may only mean large records; only an empty one means the end.
    progress.processed_offset = records[-1].offset if records else run.final_offset
    return progress


def _replay_one(
    connection: Connection[Any],
    publisher: DeadLetterPublisher,
    letter: StoredDeadLetter,
    run: _ActiveRun,
    progress: _BatchProgress,
) -> None:
    try:
        progress.replayed += replay_stored(connection, publisher, letter, Actor(run.actor), run.id)
    except RefusedError as error:
        _log.warning("dead letter %s could not be replayed: %s", letter.id, error)
        progress.refused += 1


def _check_no_active_run(connection: Connection[Any]) -> None:
    row = connection.execute(_SELECT_ACTIVE).fetchone()
    if row is not None:
        raise ReplayInProgressError(row[0])


def _find_run(connection: Connection[Any], run_id: UUID) -> ReplayRun | None:
    with connection.cursor(row_factory=class_row(ReplayRun)) as cursor:
        return cursor.execute(_GET, (run_id,)).fetchone()
