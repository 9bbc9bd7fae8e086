"""The answers and the troubles in words, and where to look."""

from collections.abc import Callable

from flask import url_for
from flask_babel import gettext as _
from flask_babel import lazy_gettext, ngettext
from markupsafe import Markup, escape

from services.monitor.formatting import duration, whole
from services.monitor.inspection.problems import Answer, Kind, Level, Question, Trouble
from shared.domain.topics import ALL_TOPICS

QUESTIONS = {
    Question.MONEY: lazy_gettext("Is money being taken?"),
    Question.WEBHOOKS: lazy_gettext("Are webhooks going out?"),
    Question.STUCK: lazy_gettext("Is anything stuck?"),
}
_YES = {
    Level.QUIET: lazy_gettext("Quiet"),
    Level.GOOD: lazy_gettext("Yes"),
    Level.WORRYING: lazy_gettext("Yes, but look"),
    Level.BAD: lazy_gettext("In trouble"),
}
_NO = {
    Level.QUIET: lazy_gettext("No"),
    Level.GOOD: lazy_gettext("No"),
    Level.WORRYING: lazy_gettext("Something waits for you"),
    Level.BAD: lazy_gettext("Yes"),
}
TONES = {Level.QUIET: "quiet", Level.GOOD: "good", Level.WORRYING: "waiting", Level.BAD: "bad"}
LEVELS = {Level.WORRYING: lazy_gettext("Look soon"), Level.BAD: lazy_gettext("Act now")}
_OF_GROUPS = frozenset(
    {Kind.GROUP_STALLED, Kind.GROUP_UNATTENDED, Kind.GROUP_BEHIND, Kind.RETRIES_LATE, Kind.TOPIC_MISSING}
)


def short_answer(answer: Answer) -> str:
    if not answer.is_known:
        return str(_("Not known yet"))
    return str((_NO if answer.question is Question.STUCK else _YES)[answer.level])


def sentence(trouble: Trouble) -> Markup:
    """What is wrong, in one sentence. Names are written from left to right in either language."""
    if trouble.kind in _OF_MANY:
        return escape(_OF_MANY[trouble.kind](trouble.count))
    return escape(str(_SENTENCES[trouble.kind])) % {
        "subject": Markup('<bdi dir="ltr">{}</bdi>').format(trouble.subject),
        "count": whole(trouble.count),
        "duration": duration(trouble.seconds),
    }


_OF_MANY: dict[Kind, Callable[[int], str]] = {
    Kind.DEAD_LETTERS: lambda n: ngettext(
        "%(num)s record could not be processed in the last hour.",
        "%(num)s records could not be processed in the last hour.",
        n,
    ),
    Kind.DELIVERIES_EXHAUSTED: lambda n: ngettext(
        "%(num)s delivery used up its tries in the last hour.",
        "%(num)s deliveries used up their tries in the last hour.",
        n,
    ),
    Kind.UNDECIDED: lambda n: ngettext(
        "%(num)s payment attempt waits for your decision.",
        "%(num)s payment attempts wait for your decision.",
        n,
    ),
    Kind.DUPLICATES: lambda n: ngettext(
        "%(num)s payment was made twice and is not handled.",
        "%(num)s payments were made twice and are not handled.",
        n,
    ),
    Kind.ENDPOINTS_FAILING: lambda n: ngettext(
        "The endpoint of %(num)s application takes nothing.",
        "The endpoints of %(num)s applications take nothing.",
        n,
    ),
}
_SENTENCES = {
    Kind.DATABASE_AWAY: lazy_gettext("The database does not answer."),
    Kind.KAFKA_AWAY: lazy_gettext("Kafka does not answer. Payments go on; webhooks wait."),
    Kind.SERVICE_DOWN: lazy_gettext("The service %(subject)s is down."),
    Kind.SERVICE_NOT_READY: lazy_gettext("The service %(subject)s is not ready."),
    Kind.OUTBOX_WAITS: lazy_gettext("The outbox has not been emptied for %(duration)s: %(count)s rows wait."),
    Kind.NOT_TAKEN_IN: lazy_gettext("An event has waited %(duration)s to be taken in by the webhooks."),
    Kind.DELIVERIES_OVERDUE: lazy_gettext("A delivery is overdue by %(duration)s."),
    Kind.EXPIRY_LATE: lazy_gettext("Payments expire late, by %(duration)s."),
    Kind.ATTEMPT_STUCK: lazy_gettext("A payment attempt has had no outcome for %(duration)s."),
    Kind.TOPIC_MISSING: lazy_gettext("The topic %(subject)s does not exist."),
    Kind.GROUP_STALLED: lazy_gettext("%(subject)s is stalled: %(count)s records wait, and nothing moves."),
    Kind.GROUP_UNATTENDED: lazy_gettext("Nobody consumes for %(subject)s: %(count)s records wait."),
    Kind.GROUP_BEHIND: lazy_gettext("%(subject)s is behind by %(duration)s: %(count)s records wait."),
    Kind.RETRIES_LATE: lazy_gettext("Retries of %(subject)s are late by %(duration)s."),
    Kind.FEW_PAID: lazy_gettext("Few payments succeed: %(count)s of %(subject)s attempts in the last hour."),
}


def place(trouble: Trouble) -> str | None:
    """Where to look."""
    if trouble.kind in _OF_GROUPS:
        return url_for("topics.show", name=_TOPIC_OF.get(trouble.subject, trouble.subject))
    endpoint = _PLACES.get(trouble.kind)
    return url_for(endpoint) if endpoint else None


_TOPIC_OF = {topic.group: topic.name for topic in ALL_TOPICS if topic.group}
_PLACES = {
    Kind.KAFKA_AWAY: "topics.listing",
    Kind.OUTBOX_WAITS: "topics.listing",
    Kind.NOT_TAKEN_IN: "topics.listing",
    Kind.DELIVERIES_OVERDUE: "topics.listing",
    Kind.DEAD_LETTERS: "dead_letters.listing",
    Kind.DELIVERIES_EXHAUSTED: "exhausted_deliveries.listing",
    Kind.ATTEMPT_STUCK: "attempts.listing",
    Kind.UNDECIDED: "attempts.listing",
    Kind.DUPLICATES: "attempts.listing",
    Kind.FEW_PAID: "attempts.listing",
    Kind.ENDPOINTS_FAILING: "applications.listing",
}
