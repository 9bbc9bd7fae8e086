"""What people call the things of an application, in their language."""

from flask_babel import lazy_gettext as _

from shared.console.payment_labels import METHODS
from shared.domain.applications.credentials import CredentialKind
from shared.domain.applications.provider_accounts import ProviderName

ADAPTERS = {ProviderName.SANDBOX: _("Sandbox"), ProviderName.PLUTU: _("Plutu")}
KINDS = {CredentialKind.API_KEY: _("API key"), CredentialKind.ACCESS_TOKEN: _("Access token")}


def words() -> dict[str, object]:
    """For the templates of this room."""
    return {"method_names": METHODS, "adapter_names": ADAPTERS, "kind_names": KINDS}
