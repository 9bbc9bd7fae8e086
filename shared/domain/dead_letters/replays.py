"""Replays of many dead letters: somebody asks for it, and it is done a few at a time, the oldest first.

How far a run has come is written with the letters that it put back: after a crash it goes on there, and of two workers
one does it. Letters that come while it goes on are not part of it.
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
"""Together: about so many go each second."""
_BATCH_LIMIT_S = 5.0
"""Where Kafka is slow: PostgreSQL waits for nobody for long."""
IDLE_S = 1.0


@dataclass(frozen=True, slots=True)
class ReplayRun:
    id: UUID
    actor: str
    origin: str | None
    """Only letters of this topic; None: of all."""
    found: int
    replayed: int
    refused: int
    """Letters that could not be put back."""
    created_at: datetime
    finished_at: datetime | None
    outcome: str | None
    """`done` or `stopped`; None while it goes on."""


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
    trouble: KafkaUnavailableError | None = None


class NothingToReplayError(RefusedError):
    def __init__(self) -> None:
        super().__init__("there is no dead letter that could be replayed and has not been")


class ReplayInProgressError(RefusedError):
    """One at a time."""

    def __init__(self, active_run_id: UUID) -> None:
        super().__init__("dead letters are being replayed already; wait until that has ended, or stop it")
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
    """`run_id` names the wish: who asks twice with one id gets the first. It counts first, which takes a while where
    there are many; of very many a run takes the oldest."""
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
    """False: it had ended before."""
    if connection.execute(_STOP, (run_id,)).rowcount == 0:
        get_replay_run(connection, run_id)
        return False
    details: AuditDetails = {"run": str(run_id), "count": get_replay_run(connection, run_id).replayed}
    add_audit_entry(connection, actor, Action.REPLAY_STOPPED, details=details)
    return True


def replay_batch(database: Database, settings: KafkaSettings) -> float:
    """A few letters of the run that is under way; returns in how many seconds it wants to be called again. When Kafka
    goes away in the middle, what was put back is written down, and KafkaUnavailableError raised."""
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
    if progress.trouble is not None:
        raise progress.trouble
    return max(0.0, BATCH_EVERY_S - (monotonic() - began))


def _replay_next(connection: Connection[Any], settings: KafkaSettings, run: _ActiveRun) -> _BatchProgress:
    deadline = monotonic() + _BATCH_LIMIT_S
    progress = _BatchProgress(run.processed_offset)
    with open_topic_reader(settings, DEAD_LETTERS) as reader:
        records = reader.read_from(run.processed_offset + 1, run.final_offset + 1, BATCH)
    still_open = select_replayable(
        connection, settings, [parse_dead_letter(one) for one in records], run.origin
    )
    with open_publisher(settings) as one:
        for letter in still_open:
            try:
                _replay_one(connection, one, letter, run, progress)
            except KafkaUnavailableError as error:
                progress.trouble = error
                return progress
            progress.processed_offset = letter.offset
            if monotonic() > deadline:
                return progress
    # Fewer than asked for may still mean that they are large: only nothing means the end.
    progress.processed_offset = records[-1].offset if records else run.final_offset
    return progress


def _replay_one(
    connection: Connection[Any],
    one: DeadLetterPublisher,
    letter: StoredDeadLetter,
    run: _ActiveRun,
    progress: _BatchProgress,
) -> None:
    try:
        progress.replayed += replay_stored(connection, one, letter, Actor(run.actor), run.id)
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
