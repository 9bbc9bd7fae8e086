"""Dismisses dead letters that need no replay, with a reason.

A dismissed dead letter leaves the list of open ones, the counts and the alerts. It stays on the topic, can be found,
and can still be replayed by itself; a bulk replay leaves it out. The dismissal has the id of the dead letter, which
does not depend on where it is on the topic. The topic's id and the offset are kept to subtract it from the counts: a
recreated topic has another id.
"""

from typing import Any
from uuid import UUID

from confluent_kafka import KafkaException
from psycopg import Connection

from shared.domain.attempts.notes import clean_note
from shared.domain.audit_log import Action, Actor, AuditDetails, add_audit_entry
from shared.domain.dead_letters.queries import DeadLetterNotFoundError, DeadLetterView, read_dead_letter
from shared.domain.topics import DEAD_LETTERS
from shared.platform.kafka import clients
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.inspection.topics import fetch_topics
from shared.platform.settings import KafkaSettings

_TIMEOUT_S = 4.0
_DISMISS = """
insert into dead_letter_dismissals (dead_letter_id, topic_id, record_offset, actor, reason)
values (%(letter)s, %(topic_id)s, %(offset)s, %(actor)s, %(reason)s) on conflict (dead_letter_id) do nothing"""


def dismiss_dead_letter(
    connection: Connection[Any], settings: KafkaSettings, letter: DeadLetterView, reason: str, actor: Actor
) -> bool:
    """Dismiss a dead letter, replayed or not. Return False, and change nothing, if it was dismissed before.

    Raises InvalidNoteError if the reason is too short or too long, DeadLetterNotFoundError if it is no longer on the
    topic, and KafkaUnavailableError.
    """
    cleaned = clean_note(reason)
    # The id is read before the record: if the topic is recreated in between, the record is not there any more.
    topic_id = _fetch_topic_id(settings, letter.id)
    if read_dead_letter(settings, letter.offset).id != letter.id:
        raise DeadLetterNotFoundError(letter.id)
    values = {
        "letter": letter.id,
        "topic_id": topic_id,
        "offset": letter.offset,
        "actor": actor.name,
        "reason": cleaned,
    }
    if connection.execute(_DISMISS, values).rowcount == 0:
        return False
    details: AuditDetails = {
        "letter": str(letter.id),
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.origin_offset,
        "reason": cleaned,
    }
    add_audit_entry(connection, actor, Action.DEAD_LETTER_DISMISSED, details=details)
    return True


def _fetch_topic_id(settings: KafkaSettings, letter_id: UUID) -> str:
    name = clients.topic_name(settings, DEAD_LETTERS.name)
    try:
        _, found = fetch_topics(clients.admin(settings, "dismissals"), [name], clients.Deadline(_TIMEOUT_S))
    except KafkaException as error:
        raise KafkaUnavailableError(f"{name}: {error.args[0].str()}") from error
    except TimeoutError as error:
        raise KafkaUnavailableError(f"{name}: Kafka did not respond in time") from error
    if name not in found:
        raise DeadLetterNotFoundError(letter_id)
    return found[name].id
