"""The scheduler's process: the jobs in their threads, and the operations pages."""

import logging

from services.scheduler.job_runner import Job, start_jobs, wait_for_jobs
from services.scheduler.jobs.bulk_replays import BulkReplays
from services.scheduler.jobs.bulk_resends import BulkResends
from services.scheduler.jobs.expiry import IntentExpiry
from services.scheduler.jobs.month_partitions import MonthPartitions
from services.scheduler.jobs.outbox_and_topic_watch import OutboxWatch, TopicWatch
from services.scheduler.jobs.purge_expired_rows import ExpiredRowPurge
from services.scheduler.jobs.relay import OutboxRelay
from services.scheduler.jobs.requeue_deliveries import DeliveryRequeue
from services.scheduler.jobs.requeue_events import EventRequeue
from services.scheduler.jobs.verification_requests import VerificationRequests
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.kafka.producer import ConfirmingProducer
from shared.platform.process import start_process, start_tracing, stop_on_signal
from shared.platform.web.health import Check
from shared.platform.web.operations_server import serve_worker_operations

SERVICE = "scheduler"

_log = logging.getLogger("services.scheduler")


def main() -> None:
    settings = start_process(SERVICE)
    start_tracing(SERVICE, settings.tracing)
    stop = stop_on_signal()
    database = Database(settings.database, SERVICE, **STABLE_PLANS)
    relay = OutboxRelay(settings.database, ConfirmingProducer(settings.kafka, OutboxRelay.name), stop)
    expiry = IntentExpiry(database)
    jobs: list[Job] = [
        relay,
        expiry,
        OutboxWatch(database),
        TopicWatch(settings.kafka),
        VerificationRequests(database),
        DeliveryRequeue(database, settings.kafka),
        EventRequeue(database, settings.kafka),
        BulkResends(database),
        BulkReplays(database, settings.kafka),
        MonthPartitions(database, settings.retention),
        ExpiredRowPurge(database, settings.retention),
    ]
    runners = start_jobs(jobs, stop)
    checks: dict[str, Check] = {
        "refused rows": relay.check,
        "refused expiries": expiry.check,
        **{runner.name: runner.check for runner in runners},
    }
    server = serve_worker_operations(SERVICE, settings, database, checks)
    _log.info("started on port %d", server.port)
    stop.wait()
    _log.info("stopping")
    wait_for_jobs(runners)
    server.close()
    database.close()


if __name__ == "__main__":
    main()
