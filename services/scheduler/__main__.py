"""The scheduler's process: its duties in threads, and its operations pages."""

import logging

from services.scheduler.bulk_resends import BulkResends
from services.scheduler.duties import Duty, start_duties, wait_for_duties
from services.scheduler.expiry import Expiry
from services.scheduler.lapsed_rows import LapsedRows
from services.scheduler.outbox_watch import OutboxWatch
from services.scheduler.partitions import Partitions
from services.scheduler.redrive import Redrive
from services.scheduler.relay import Relay
from services.scheduler.republish import Republish
from services.scheduler.topic_watch import TopicWatch
from services.scheduler.verification_requests import VerificationRequests
from shared.platform.database.connections import STEADY_PLANS
from shared.platform.database.pool import Database
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.process import begin, stop_on_signal
from shared.platform.tracing.setup import start_tracing
from shared.platform.web.operations_server import serve_worker_pages
from shared.platform.web.readiness import Check

SERVICE = "scheduler"

_log = logging.getLogger("services.scheduler")


def main() -> None:
    settings = begin(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    stop = stop_on_signal()
    database = Database(settings.database, SERVICE, **STEADY_PLANS)
    relay = Relay(settings.database, ConfirmingProducer(settings.kafka, Relay.name), stop)
    expiry = Expiry(database)
    duties: list[Duty] = [
        relay,
        expiry,
        OutboxWatch(database),
        TopicWatch(settings.kafka),
        VerificationRequests(database),
        Redrive(database, settings.kafka),
        Republish(database, settings.kafka),
        BulkResends(database),
        Partitions(database, settings.kept),
        LapsedRows(database, settings.kept),
    ]
    runners = start_duties(duties, stop)
    checks: dict[str, Check] = {
        "refused rows": relay.check,
        "refused expiries": expiry.check,
        **{runner.name: runner.check for runner in runners},
    }
    server = serve_worker_pages(SERVICE, settings, database, checks)
    _log.info("started on port %d", server.port)
    stop.wait()
    _log.info("stopping")
    wait_for_duties(runners)
    server.close()
    database.close()


if __name__ == "__main__":
    main()
