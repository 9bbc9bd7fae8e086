"""Mails an invitation, in Arabic and English, through the configured SMTP server."""

import smtplib
import socket
import ssl
from contextlib import suppress
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from threading import Timer

import structlog

from shared.platform.settings import MailSettings

_READ_TIMEOUT_S = 10
_TOTAL_TIMEOUT_S = 15
_TEXT = """\
{merchant}

دُعيت إلى لوحة ميزان الخاصة بهذا التاجر. افتح الرابط التالي للانضمام؛ وهو صالح لسبعة أيام ولمرة واحدة. لا تعطه لأحد.

You are invited to this merchant's Mizan dashboard. Open this link to join; it is good for seven days, and once. Give it
to nobody else.

{link}
"""

log = structlog.get_logger(__name__)


class MailFailedError(Exception):
    """The mail could not be sent; the log says why."""


def send_invitation(mail: MailSettings, email: str, merchant: str, link: str) -> None:
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
        server.send_message(_message(mail, email, merchant, link))
    except Exception as error:
        log.warning("an invitation could not be mailed", reason=type(error).__name__)
        raise MailFailedError from error
    finally:
        limit.cancel()
        server.close()


def _message(mail: MailSettings, email: str, merchant: str, link: str) -> EmailMessage:
    message = EmailMessage()
    message["From"] = Address(addr_spec=mail.sender)
    message["To"] = Address(addr_spec=email)
    message["Subject"] = "دعوة إلى ميزان · Your invitation to Mizan"
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=mail.sender.rpartition("@")[2])
    message.set_content(_TEXT.format(merchant=" ".join(merchant.split()), link=link))
    return message


def _disconnect(server: smtplib.SMTP) -> None:
    if server.sock is not None:
        with suppress(OSError):
            server.sock.shutdown(socket.SHUT_RDWR)
