"""Objects that both processes, the pages and the verifier, need."""

from dataclasses import dataclass, replace

from services.checkout.metrics import initialize_series
from services.checkout.payments.limits import PaymentLimits
from services.checkout.payments.one_time_codes import CodeChallenges
from services.checkout.payments.payment_service import PaymentService
from services.checkout.payments.settlement import SettlementSideEffects
from services.checkout.providers.registry import ProviderRegistry
from shared.domain.applications.provider_accounts import ProviderName
from shared.platform.database.pool import Database
from shared.platform.database.stable_plans import STABLE_PLANS
from shared.platform.keys import open_keys
from shared.platform.settings import DatabaseSettings, KeyPurpose, Settings

SERVICE = "checkout"
_PREPARE_AFTER = 5


@dataclass(frozen=True, slots=True)
class Dependencies:
    providers: ProviderRegistry
    payments: PaymentService
    side_effects: SettlementSideEffects


def open_database(settings: DatabaseSettings) -> Database:
    """Open the database for the pages. Their statements are prepared: planning one costs more than running it."""
    return Database(replace(settings, prepare_after=_PREPARE_AFTER), SERVICE, **STABLE_PLANS)


def build_dependencies(settings: Settings, database: Database) -> Dependencies:
    """Build the dependencies. Raises NoSecretKeysError without a key for provider credentials or customer data."""
    keys = open_keys(settings)
    initialize_series(
        [ProviderName.PLUTU] if settings.sandbox is None else [ProviderName.PLUTU, ProviderName.SANDBOX]
    )
    providers = ProviderRegistry(settings, keys.open_box(KeyPurpose.PROVIDER_CREDENTIALS))
    codes = CodeChallenges(keys.open_box(KeyPurpose.CUSTOMER_DATA))
    key = keys.derive(KeyPurpose.CUSTOMER_DATA, "checkout limits")
    limits = PaymentLimits(key, settings.checkout.codes_per_phone, settings.checkout.failures_per_address)
    payments = PaymentService(database, providers, codes, limits)
    return Dependencies(providers, payments, SettlementSideEffects(codes, limits))
