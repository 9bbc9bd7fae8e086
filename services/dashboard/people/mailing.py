"""Mails an invitation, in both languages, through the SMTP server of the settings."""

import smtplib
import ssl
from contextlib import closing
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

import structlog

from shared.settings import MailSettings

_TIMEOUT_S = 10
_TEXT = """\
{merchant}

دُعيت إلى لوحة ميزان الخاصة بهذا التاجر. افتح الرابط التالي واختر كلمة مرور؛ وهو صالح لسبعة أيام ولمرة واحدة.

You are invited to this merchant's Mizan dashboard. Open this link and choose a password; it is good for seven days,
and once.

{link}
"""

log = structlog.get_logger(__name__)


class MailRefusedError(Exception):
    """The server did not take the mail; the log says why."""


def send_invitation(mail: MailSettings, email: str, merchant: str, link: str) -> None:
    message = EmailMessage()
    message["From"] = mail.sender
    message["To"] = email
    message["Subject"] = "دعوة إلى ميزان · Your invitation to Mizan"
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=mail.sender.rpartition("@")[2])
    message.set_content(_TEXT.format(merchant=" ".join(merchant.split()), link=link))
    try:
        with closing(_connect(mail)) as server:
            server.send_message(message)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        log.warning("an invitation could not be mailed", reason=type(error).__name__)
        raise MailRefusedError from error


def _connect(mail: MailSettings) -> smtplib.SMTP:
    tls = ssl.create_default_context()
    if mail.tls == "implicit":
        server: smtplib.SMTP = smtplib.SMTP_SSL(mail.host, mail.port, timeout=_TIMEOUT_S, context=tls)
    else:
        server = smtplib.SMTP(mail.host, mail.port, timeout=_TIMEOUT_S)
    try:
        if mail.tls == "starttls":
            server.starttls(context=tls)
        if mail.user is not None:
            server.login(mail.user, mail.password or "")
    except BaseException:
        server.close()
        raise
    return server
