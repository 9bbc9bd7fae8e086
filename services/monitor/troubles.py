"""What only the monitor says of what cannot be shown or done: an engine does not answer."""

from flask import request
from flask.typing import ResponseReturnValue
from flask_babel import lazy_gettext as _

from shared.console.error_pages import AWAY_CHANGING, is_for_program, show_trouble, trouble_pages
from shared.platform.kafka.errors import KafkaUnavailableError

_KAFKA_AWAY = _("Kafka does not answer")
_NOTHING_CHANGED = _("What needs it cannot be shown or done now. Nothing was changed.")

trouble_page = trouble_pages(
    away=(
        _("The database does not answer"),
        _("What needs it cannot be shown now. The overview still tells the rest."),
    )
)


def answer_kafka_away(_error: KafkaUnavailableError) -> ResponseReturnValue:
    if is_for_program():
        return {"message": "Kafka does not answer."}, 503
    # What was on the wire when our patience ended may still arrive.
    text = _NOTHING_CHANGED if request.method == "GET" else AWAY_CHANGING[1]
    return show_trouble((_KAFKA_AWAY, text)), 503
