"""What the pages and the verifier are both made of."""

from dataclasses import dataclass

from services.checkout.accounts import Accounts
from services.checkout.codes import Codes
from services.checkout.following import Following
from services.checkout.limits import Limits
from services.checkout.metrics import show_from_the_start
from services.checkout.payments import Payments
from shared.domain.applications.provider_accounts import Adapter
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox, derived_key
from shared.platform.settings import Settings

SERVICE = "checkout"


@dataclass(frozen=True, slots=True)
class Workshop:
    accounts: Accounts
    payments: Payments
    following: Following


def set_up(settings: Settings, database: Database) -> Workshop:
    """Raises NoSecretKeysError where there is nothing to seal with."""
    box = SecretBox(settings.secret_keys)
    show_from_the_start([Adapter.PLUTU] if settings.sandbox is None else [Adapter.PLUTU, Adapter.SANDBOX])
    accounts = Accounts(settings, box)
    codes = Codes(box)
    # The oldest key stays longest while keys are rotated: all processes have it.
    key = derived_key(settings.secret_keys[-1], "checkout limits")
    limits = Limits(key, settings.checkout.codes_per_phone)
    return Workshop(accounts, Payments(database, accounts, codes, limits), Following(codes, limits))
