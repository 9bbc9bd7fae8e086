"""Labels of an application's pages, and why something cannot be done."""

from flask_babel import lazy_gettext as _

from shared.console.audit_log import CREDENTIAL_KINDS
from shared.console.payment_labels import METHODS, PROVIDERS
from shared.domain.applications import merchants, public_names
from shared.domain.applications.errors import (
    CredentialExistsError,
    InvalidNameError,
    InvalidPublicNameError,
    NoMethodsError,
    WebhookSecretRolledError,
)
from shared.domain.applications.provider_accounts import (
    CredentialsIncompleteError,
    InvalidCredentialError,
)
from shared.domain.deliveries.pause import SendingRefusedError, SendRefusal
from shared.platform.errors import RefusedError
from shared.platform.outbound_url import MAX_LENGTH, UrlFault, WebhookUrlError

FORM_EXPIRED = _("This page was open for too long. Nothing was changed. Try again.")

_REFUSALS = {
    InvalidNameError: _(
        "Choose a name of 1 to %(most)d characters, without line breaks.", most=merchants.MAX_NAME_LENGTH
    ),
    InvalidPublicNameError: _(
        "Choose a name of at most %(most)d characters, with letters or digits, and without characters that are "
        "invisible or change the direction of the text.",
        most=public_names.MAX_LENGTH,
    ),
    NoMethodsError: _("Choose at least one payment method."),
    CredentialExistsError: _(
        "This credential was already issued and cannot be shown again. If you lost it, revoke it and issue another."
    ),
    CredentialsIncompleteError: _("Fill in all fields."),
    InvalidCredentialError: _(
        "This is empty, too long, or contains spaces or characters that a credential cannot have."
    ),
    WebhookSecretRolledError: _(
        "The secret was rolled a moment ago, so it was not rolled again. If nobody kept the new one, roll it now."
    ),
}
_SEND_REFUSALS = {
    SendRefusal.NO_URL: _("There is no webhook URL to send to. Set one first."),
    SendRefusal.PAUSED: _("An operator has paused the webhooks of this application. Nothing was sent."),
}

_URL_FAULTS = {
    UrlFault.TOO_LONG: _("The URL is too long: the limit is %(most)d characters.", most=MAX_LENGTH),
    UrlFault.STRAY_CHARACTER: _(
        "The URL contains a space or a character that is not allowed. "
        "Percent-encode it; in a host name, use the xn-- form."
    ),
    UrlFault.NOT_ABSOLUTE: _("The URL must begin with https:// and a host name."),
    UrlFault.USER_INFO: _(
        "The URL must not contain a user name or password. Put a token into the path if you need one."
    ),
    UrlFault.FRAGMENT: _("The URL must not have a fragment: nothing from # on is ever sent."),
    UrlFault.UNREADABLE_HOST: _("The host or the port of the URL cannot be read."),
    UrlFault.IMPOSSIBLE_PORT: _("The port of the URL is invalid: ports go from 1 to 65535."),
    UrlFault.LOCAL_NAME: _("The URL must have a public host name; this one means a local machine."),
    UrlFault.PRIVATE_ADDRESS: _(
        "The URL must have a public address; this one is private, local or reserved."
    ),
    UrlFault.ODD_SPELLING: _(
        "The IP address in the URL is written in an unusual form. Use a host name instead."
    ),
}


def refusal_text(error: RefusedError | WebhookUrlError) -> str:
    if isinstance(error, WebhookUrlError):
        return str(_URL_FAULTS[error.fault])
    if isinstance(error, SendingRefusedError):
        return str(_SEND_REFUSALS[error.refusal])
    return str(_REFUSALS[type(error)])


def template_labels() -> dict[str, object]:
    """Return what every template of this feature can use."""
    return {"method_names": METHODS, "adapter_names": PROVIDERS, "kind_names": CREDENTIAL_KINDS}
