"""The webhook service's process: its consumers in threads, and its operations pages.

Usage: python -m services.webhooks [intake] [deliver] [slow] [resend] [delay]; without a name, all of them.
"""

import gc
import logging
import resource
import sys
from threading import Event, Thread

from services.webhooks.roles import Role, UnknownRoleError, Workshop, chosen_roles
from shared.db.connections import STEADY_PLANS
from shared.db.pool import Database
from shared.kafka.loop import ConsumerLoop
from shared.process import begin, refuse, stop_on_signal
from shared.sealing import NoSecretKeysError
from shared.web.worker_pages import serve_worker_pages

SERVICE = "webhooks"
_STOP_PATIENCE_S = 30

_log = logging.getLogger("services.webhooks")


class RoleThread(Thread):
    """A consumer at work. When one ends that nobody asked to end, the whole process does, and is started again."""

    def __init__(self, role: Role, loop: ConsumerLoop, stop: Event) -> None:
        super().__init__(name=role.name, daemon=True)
        self.loop = loop
        self.failed = False
        self._stop_all = stop

    def run(self) -> None:
        try:
            self.loop.run()
        except Exception:  # noqa: BLE001  the thread's edge
            self.failed = True
            _log.exception("%s has ended", self.name)
        finally:
            self._stop_all.set()


def main() -> None:
    settings = begin(SERVICE)
    stop = stop_on_signal()
    _allow_many_connections()
    database = Database(settings.database, SERVICE, **STEADY_PLANS)
    try:
        roles = chosen_roles(sys.argv[1:])
        workshop = Workshop(settings, database)
    except (UnknownRoleError, NoSecretKeysError) as error:
        refuse(SERVICE, error)
    threads = [RoleThread(role, workshop.loop(role), stop) for role in roles]
    checks = {thread.name: thread.loop.progress.check for thread in threads}
    server = serve_worker_pages(SERVICE, settings, database, checks)
    _tune_the_interpreter()
    for thread in threads:
        thread.start()
    _log.info("started on port %d", server.port)
    stop.wait()
    _log.info("stopping")
    for thread in threads:
        thread.loop.stop()
    for thread in threads:
        thread.join(_STOP_PATIENCE_S)
    workshop.close()
    server.close()
    database.close()
    sys.exit(any(thread.failed for thread in threads))


def _tune_the_interpreter() -> None:
    gc.freeze()
    # Thousands of tries are alive at once and nothing refers back to itself: looking through them is in vain.
    gc.set_threshold(20_000, 50, 100)
    # The threads of a lane take turns often: requests in flight must not wait for a batch to be put together.
    sys.setswitchinterval(0.001)


def _allow_many_connections() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main()
