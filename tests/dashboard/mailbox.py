"""A mail server in the process of the test, and what the dashboard sent through it."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Event
from typing import Any

from aiosmtpd.controller import Controller

from shared.platform.settings import DashboardSettings, MailSettings
from stack.ports import find_free_ports
from tests.dashboard.world import DashboardWorld

_LINK = re.compile(r"http://[^/\s]+(/invitations/inv_\w+)")


class Mailbox:
    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.accepts = Event()
        """Until it is set, a mail is not accepted."""
        self.accepts.set()

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802  aiosmtpd's name
        await asyncio.to_thread(self.accepts.wait, 30)
        self.mails.append(message_from_bytes(envelope.content, _class=EmailMessage, policy=policy.default))
        return "250 OK"

    def link(self) -> str:
        """Return the path of the invitation link in the last mail that has one."""
        texts = (mail.get_content() for mail in reversed(self.mails))
        return find_link(next(text for text in texts if _LINK.search(text)))


def find_link(text: str) -> str:
    """Return the path of the first invitation link in a mail or on a page."""
    return str(_LINK.findall(text)[0])


@contextmanager
def open_mailbox(world: DashboardWorld) -> Iterator[Mailbox]:
    """Let the dashboard, which is started later, send its mails to this mailbox."""
    box = Mailbox()
    port = find_free_ports(1)[0]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    mail_through(world, port)
    yield box
    box.accepts.set()
    asyncio.run_coroutine_threadsafe(_finish_connections(controller), controller.loop).result(40)
    controller.stop()


async def _finish_connections(controller: Controller) -> None:
    """Wait for the mails that are being sent, then accept no more: `stop` would leave their sockets open.

    In this order: a connection whose task has not run yet when the server is closed would never be closed itself.
    """
    assert controller.server is not None
    async with asyncio.timeout(30):
        # Accepting a connection is a task, which starts another one that serves it.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks)
    controller.server.close()


def mail_through(world: DashboardWorld, port: int) -> None:
    """Configure a mail server at this port of this machine."""
    mail = MailSettings("127.0.0.1", port, "mizan@example.ly", tls="none")
    world.settings = replace(world.settings, dashboard=DashboardSettings(mail=mail))
