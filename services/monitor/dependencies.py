"""What the rooms of the monitor work with."""

from dataclasses import dataclass

from services.monitor.inspection.inspector import Watch
from shared.domain.accounts.throttles import SignInThrottle
from shared.platform.database.pool import Database
from shared.platform.encryption import derive_key
from shared.platform.settings import Settings

SERVICE = "monitor"


@dataclass(frozen=True, slots=True)
class Dependencies:
    settings: Settings
    database: Database
    throttles: SignInThrottle
    watch: Watch
    """What is seen of Kafka, the database and the services, again and again."""


def build_dependencies(settings: Settings, database: Database, watch: Watch) -> Dependencies:
    # The oldest key stays longest while keys are rotated. Guesses here and at the dashboard are counted apart.
    throttles = SignInThrottle(derive_key(settings.secret_keys[-1], "operators' sign-in throttles"))
    return Dependencies(settings, database, throttles, watch)
