"""What the dashboard's views depend on."""

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
    """Raises NoSecretKeysError if no secret key is configured."""
    box = SecretBox(settings.secret_keys)
    # The oldest key: while keys are rotated, every process has it.
    throttles = SignInThrottle(derive_key(settings.secret_keys[-1], "sign-in throttles"))
    return Dependencies(settings, database, box, throttles)
