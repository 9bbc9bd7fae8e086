"""Sends mails through the configured SMTP server: invitations while the page waits, others in the background."""

import smtplib
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from threading import BoundedSemaphore, Timer

import structlog

from shared.platform.settings import MailSettings

_READ_TIMEOUT_S = 10
_TOTAL_TIMEOUT_S = 15
_MAX_WAITING = 500
_INVITATION_SUBJECT = "دعوة إلى ميزان · Your invitation to Mizan"
_INVITATION = """\
{merchant}

دُعيت إلى لوحة ميزان الخاصة بهذا التاجر. افتح الرابط التالي للانضمام؛ وهو صالح لسبعة أيام ولمرة واحدة. لا تعطه لأحد.

You are invited to this merchant's Mizan dashboard. Open this link to join; it is good for seven days, and once. Give it
to nobody else.

{link}
"""

log = structlog.get_logger(__name__)


class MailFailedError(Exception):
    """The mail could not be sent; the log says why."""


@dataclass(frozen=True, slots=True)
class Mail:
    kind: str
    """What the log calls it."""
    to: str
    subject: str
    text: str = field(repr=False)


def send_invitation(mail: MailSettings, email: str, merchant: str, link: str) -> None:
    """Mail an invitation, in Arabic and English. Raises MailFailedError."""
    text = _INVITATION.format(merchant=" ".join(merchant.split()), link=link)
    send_mail(mail, Mail("invitation", email, _INVITATION_SUBJECT, text))


def send_mail(mail: MailSettings, sent: Mail) -> None:
    """Send a mail within 15 seconds. Raises MailFailedError."""
    tls = ssl.create_default_context()
    server = (
        smtplib.SMTP_SSL(timeout=_READ_TIMEOUT_S, context=tls)
        if mail.tls == "implicit"
        else smtplib.SMTP(timeout=_READ_TIMEOUT_S)
    )
    # A server that sends a byte now and then would never hit the read timeout.
    limit = Timer(_TOTAL_TIMEOUT_S, _disconnect, [server])
    limit.start()
    try:
        server.connect(mail.host, mail.port)
        if mail.tls == "starttls":
            server.starttls(context=tls)
        if mail.user is not None:
            server.login(mail.user, mail.password or "")
        server.send_message(_message(mail, sent))
    except Exception as error:
        log.warning("a mail could not be sent", kind=sent.kind, reason=type(error).__name__)
        raise MailFailedError from error
    finally:
        limit.cancel()
        server.close()


class MailQueue:
    """Sends mails in the background, one after the other, so that a slow mail server holds up no page.

    The log has each mail when it is queued, and again when it was sent or lost. A process that stops sends what waits,
    for as long as it is given.
    """

    def __init__(self, mail: MailSettings) -> None:
        self._mail = mail
        self._thread = ThreadPoolExecutor(1, "mail")
        self._waiting = BoundedSemaphore(_MAX_WAITING)

    def add(self, queued: Mail) -> None:
        """Queue a mail. If too many wait already, it is lost, and logged."""
        if not self._waiting.acquire(blocking=False):
            log.error("a mail was not sent, because too many wait", kind=queued.kind)
            return
        log.info("a mail was queued", kind=queued.kind)
        self._thread.submit(self._send, queued)

    def _send(self, queued: Mail) -> None:
        try:
            send_mail(self._mail, queued)
            log.info("a mail was sent", kind=queued.kind)
        except MailFailedError:
            pass  # it is logged
        finally:
            self._waiting.release()


def _message(mail: MailSettings, sent: Mail) -> EmailMessage:
    message = EmailMessage()
    message["From"] = Address(addr_spec=mail.sender)
    message["To"] = Address(addr_spec=sent.to)
    message["Subject"] = sent.subject
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=mail.sender.rpartition("@")[2])
    message.set_content(sent.text)
    return message


def _disconnect(server: smtplib.SMTP) -> None:
    if server.sock is not None:
        with suppress(OSError):
            server.sock.shutdown(socket.SHUT_RDWR)
