"""Mails every owner what was changed, by whom, when and from where, in Arabic and English, after it was committed."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit
from uuid import UUID

import structlog
from flask import Flask, Response
from flask_babel import force_locale
from flask_babel import gettext as _

from services.dashboard.access import take_noted_changes
from services.dashboard.dependencies import Dependencies
from services.dashboard.people.mail import Mail, MailQueue
from services.dashboard.row_security import ScopedDatabase
from shared.console.audit_log import ACTIONS, DETAILS, label_value
from shared.console.language import list_separator
from shared.domain.audit_log import Action, AuditEntry
from shared.domain.security_changes import ChangesToMail, read_changes_to_mail
from shared.platform.database.pool import DatabaseUnavailableError
from shared.platform.web.languages import LANGUAGES, format_time

_SHOWN_DETAILS = (
    "name",
    "mode",
    "methods",
    "method",
    "adapter",
    "kind",
    "prefix",
    "email",
    "role",
    "from",
    "to",
    "version",
)
_URLS = ("url", "before")
"""Webhook URLs can contain a secret: only their host is mailed."""
_MAX_VALUE = 200

log = structlog.get_logger(__name__)


def register_change_mails(app: Flask, dependencies: Dependencies) -> None:
    """Mail the security changes of each request, if a mail server is configured."""
    mail = dependencies.settings.dashboard.mail
    if mail is None:
        return
    queue = MailQueue(mail)
    dashboard = dependencies.settings.public_urls.dashboard

    @app.after_request
    def mail_changes(response: Response) -> Response:
        noted = take_noted_changes()
        for to_mail in _read(dependencies.database, noted):
            text = "\n\n".join(_in_language(lang, to_mail, dashboard) for lang in LANGUAGES)
            for owner in to_mail.owners:
                queue.add(Mail("security change", owner, _subject(), text))
        return response


def _read(database: ScopedDatabase, noted: Mapping[UUID, Sequence[UUID]]) -> Iterator[ChangesToMail]:
    for merchant_id, entries in noted.items():
        try:
            with database.of_merchant(merchant_id).cursor() as cursor:
                found = read_changes_to_mail(cursor, entries)
        except DatabaseUnavailableError:
            log.warning("security changes were not mailed", entries=[str(entry) for entry in entries])
        else:
            yield from found


def _subject() -> str:
    subjects = []
    for lang in LANGUAGES:
        with force_locale(lang):
            subjects.append(_("A security change in Mizan"))
    return " · ".join(subjects)


def _in_language(lang: str, to_mail: ChangesToMail, dashboard: str) -> str:
    with force_locale(lang):
        return "\n".join(_lines(lang, to_mail, dashboard))


def _lines(lang: str, to_mail: ChangesToMail, dashboard: str) -> Iterator[str]:
    yield _(
        "Security changes in the Mizan dashboard of %(merchant)s:", merchant=_one_line(to_mail.merchant_name)
    )
    for entry, application in to_mail.changes:
        yield ""
        yield f"- {ACTIONS[Action(entry.action)]}"
        if application is not None:
            yield _line(_("Application"), application)
        for label, value in _details(entry):
            yield _line(label, value)
        yield _line(_("Who"), entry.actor)
        yield _line(_("When (Libyan time)"), format_time(entry.at, lang))
        yield _line(_("Address"), entry.address or "?")
    yield ""
    if to_mail.is_last:
        yield _("No more changes are mailed within this hour. They are in the audit log.")
    yield _(
        "If you did not expect this, sign in to the dashboard at %(dashboard)s, look at the audit log, and change your "
        "password.",
        dashboard=dashboard,
    )


def _details(entry: AuditEntry) -> Iterator[tuple[str, str]]:
    for name, value in entry.details.items():
        if value is None:
            continue
        if name in _URLS:
            yield str(DETAILS[name]), urlsplit(str(value)).hostname or ""
        elif name in _SHOWN_DETAILS:
            labels = label_value(entry.action, name, value)
            yield str(DETAILS[name]), list_separator().join(map(str, labels))


def _line(label: str, value: str) -> str:
    return f"  {label}: {_one_line(value)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_MAX_VALUE]
