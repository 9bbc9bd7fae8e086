"""What the rooms of the dashboard work with."""

from dataclasses import dataclass

from shared.domain.accounts.throttles import SignInThrottle
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox, derive_key
from shared.platform.settings import Settings

SERVICE = "dashboard"


@dataclass(frozen=True, slots=True)
class Dependencies:
    settings: Settings
    database: Database
    box: SecretBox
    throttles: SignInThrottle


def build_dependencies(settings: Settings, database: Database) -> Dependencies:
    """Raises NoSecretKeysError where there is nothing to seal with."""
    box = SecretBox(settings.secret_keys)
    # The oldest key stays longest while keys are rotated: all processes have it.
    throttles = SignInThrottle(derive_key(settings.secret_keys[-1], "sign-in throttles"))
    return Dependencies(settings, database, box, throttles)
