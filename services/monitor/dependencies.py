"""What the views of the monitor need: settings, database, sign-in throttles and the inspector."""

from dataclasses import dataclass

from services.monitor.inspection.inspector import SystemInspector
from shared.domain.accounts.throttles import SignInThrottle
from shared.platform.database.pool import Database
from shared.platform.keys import open_keys
from shared.platform.settings import KeyPurpose, Settings

SERVICE = "monitor"


@dataclass(frozen=True, slots=True)
class Dependencies:
    settings: Settings
    database: Database
    throttles: SignInThrottle
    inspector: SystemInspector


def build_dependencies(settings: Settings, database: Database, inspector: SystemInspector) -> Dependencies:
    """Raises NoSecretKeysError without a session key."""
    # The dashboard counts failed sign-ins separately.
    throttles = SignInThrottle(
        open_keys(settings).derive(KeyPurpose.SESSIONS, "operators' sign-in throttles")
    )
    return Dependencies(settings, database, throttles, inspector)
