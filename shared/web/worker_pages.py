"""The operations pages of a process that consumes or keeps time: what all of them check, and what is its own."""

from collections.abc import Mapping

from shared.db.pool import Database
from shared.kafka.reachable import KafkaReachable
from shared.process import refuse
from shared.settings import Settings
from shared.web.app import create_app
from shared.web.database_checks import database_checks
from shared.web.listening import PortNotUsableError
from shared.web.operations_server import OperationsServer, serve_operations
from shared.web.readiness import Check


def serve_worker_pages(
    service: str, settings: Settings, database: Database, its_own: Mapping[str, Check]
) -> OperationsServer:
    """Ends the process with a clear word where the port cannot be used."""
    checks: dict[str, Check] = {
        **database_checks(settings, database),
        "kafka": KafkaReachable(settings.kafka).check,
        **its_own,
    }
    try:
        return serve_operations(
            create_app(service, checks, settings.metrics_dir), settings.http_host, settings.http_port
        )
    except PortNotUsableError as error:
        refuse(service, error)
