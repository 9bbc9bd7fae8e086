"""Objects that both processes, the pages and the verifier, need."""

from dataclasses import dataclass

from services.checkout.metrics import initialize_series
from services.checkout.payments.limits import PaymentLimits
from services.checkout.payments.one_time_codes import CodeChallenges
from services.checkout.payments.payment_service import PaymentService
from services.checkout.payments.settlement import SettlementSideEffects
from services.checkout.providers.registry import ProviderRegistry
from shared.domain.applications.provider_accounts import ProviderName
from shared.platform.database.pool import Database
from shared.platform.encryption import SecretBox, derive_key
from shared.platform.settings import Settings

SERVICE = "checkout"


@dataclass(frozen=True, slots=True)
class Dependencies:
    providers: ProviderRegistry
    payments: PaymentService
    side_effects: SettlementSideEffects
    box: SecretBox


def build_dependencies(settings: Settings, database: Database) -> Dependencies:
    """Build the dependencies. Raises NoSecretKeysError if there are no keys to encrypt with."""
    box = SecretBox(settings.secret_keys)
    initialize_series(
        [ProviderName.PLUTU] if settings.sandbox is None else [ProviderName.PLUTU, ProviderName.SANDBOX]
    )
    providers = ProviderRegistry(settings, box)
    codes = CodeChallenges(box)
    # During a key rotation, all processes have the oldest key.
    key = derive_key(settings.secret_keys[-1], "checkout limits")
    limits = PaymentLimits(key, settings.checkout.codes_per_phone, settings.checkout.failures_per_address)
    payments = PaymentService(database, providers, codes, limits)
    return Dependencies(providers, payments, SettlementSideEffects(codes, limits), box)
