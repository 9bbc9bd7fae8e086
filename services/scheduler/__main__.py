"""The scheduler's process: its duties in threads, and its operations pages."""

import logging
from functools import partial

from services.scheduler.duties import Duty, start_duties, wait_for_duties
from services.scheduler.expiry import Expiry
from services.scheduler.lapsed_rows import LapsedRows
from services.scheduler.outbox_watch import OutboxWatch
from services.scheduler.partitions import Partitions
from services.scheduler.redrive import Redrive
from services.scheduler.relay import Relay
from services.scheduler.republish import Republish
from services.scheduler.topic_watch import TopicWatch
from shared.db.connections import STEADY_PLANS
from shared.db.pool import Database
from shared.db.schema import check_schema
from shared.kafka.producer import ConfirmingProducer
from shared.kafka.reachable import KafkaReachable
from shared.process import begin, refuse, stop_on_signal
from shared.web.app import create_app
from shared.web.listening import PortNotUsableError
from shared.web.operations_server import serve_operations
from shared.web.readiness import Check

SERVICE = "scheduler"

_log = logging.getLogger("services.scheduler")


def main() -> None:
    settings = begin(SERVICE)
    stop = stop_on_signal()
    database = Database(settings.database, SERVICE, **STEADY_PLANS)
    relay = Relay(settings.database, ConfirmingProducer(settings.kafka, Relay.name), stop)
    expiry = Expiry(database)
    duties: list[Duty] = [
        relay,
        expiry,
        OutboxWatch(database),
        TopicWatch(settings.kafka),
        Redrive(database, settings.kafka),
        Republish(database, settings.kafka),
        Partitions(database, settings.kept),
        LapsedRows(database, settings.kept),
    ]
    runners = start_duties(duties, stop)
    checks: dict[str, Check] = {
        "database": database.check,
        "schema": partial(check_schema, database),
        "kafka": KafkaReachable(settings.kafka).check,
        "refused rows": relay.check,
        "refused expiries": expiry.check,
        **{runner.name: runner.check for runner in runners},
    }
    try:
        server = serve_operations(
            create_app(SERVICE, checks, settings.metrics_dir), settings.http_host, settings.http_port
        )
    except PortNotUsableError as error:
        refuse(SERVICE, error)
    _log.info("started on port %d", server.port)
    stop.wait()
    _log.info("stopping")
    wait_for_duties(runners)
    server.close()
    database.close()


if __name__ == "__main__":
    main()
