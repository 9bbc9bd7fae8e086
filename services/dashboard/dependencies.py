"""What the dashboard's views depend on."""

from dataclasses import dataclass

from services.dashboard.row_security import ScopedDatabase
from shared.domain.accounts.throttles import SignInThrottle
from shared.platform.encryption import SecretBox
from shared.platform.keys import open_keys
from shared.platform.settings import KeyPurpose, Settings

SERVICE = "dashboard"


@dataclass(frozen=True, slots=True)
class Dependencies:
    settings: Settings
    database: ScopedDatabase
    webhook_box: SecretBox
    provider_box: SecretBox
    form_box: SecretBox
    """For form tokens."""
    throttles: SignInThrottle


def build_dependencies(settings: Settings, database: ScopedDatabase) -> Dependencies:
    """Raises NoSecretKeysError without a key for webhook secrets, provider credentials or sessions."""
    keys = open_keys(settings)
    return Dependencies(
        settings,
        database,
        keys.open_box(KeyPurpose.WEBHOOK_SECRETS),
        keys.open_box(KeyPurpose.PROVIDER_CREDENTIALS),
        keys.open_box(KeyPurpose.SESSIONS),
        SignInThrottle(keys.derive(KeyPurpose.SESSIONS, "sign-in throttles")),
    )
