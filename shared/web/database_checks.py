"""What /readyz of every process with a database looks at."""

from functools import partial

from shared.db.pool import Database
from shared.db.schema import check_schema
from shared.production.demo_data import DemoDataCheck
from shared.settings import Environment, Settings
from shared.web.readiness import Check


def database_checks(settings: Settings, database: Database) -> dict[str, Check]:
    checks: dict[str, Check] = {"database": database.check, "schema": partial(check_schema, database)}
    if settings.environment is Environment.PRODUCTION:
        checks["demo data"] = DemoDataCheck(database).check
    return checks
