"""What the views of the monitor need: settings, database, sign-in throttles and the inspector."""

from dataclasses import dataclass

from services.monitor.inspection.inspector import SystemInspector
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
    inspector: SystemInspector


def build_dependencies(settings: Settings, database: Database, inspector: SystemInspector) -> Dependencies:
    # During a key rotation the oldest key stays longest. The dashboard counts failed sign-ins separately.
    throttles = SignInThrottle(derive_key(settings.secret_keys[-1], "operators' sign-in throttles"))
    return Dependencies(settings, database, throttles, inspector)
