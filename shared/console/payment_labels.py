"""Labels for payments, attempts and providers, as in docs/terms.md. Templates know this module as `payment_labels`."""

from flask_babel import gettext
from flask_babel import lazy_gettext as _

from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.provider_accounts import ProviderName
from shared.domain.attempts.decision_rules import RecordedAnswer
from shared.domain.attempts.states import MAX_CODE_TRIES, AttemptState
from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod

METHODS = {
    PaymentMethod.CARD: _("Bank card"),
    PaymentMethod.SADAD: _("Sadad"),
    PaymentMethod.ADFALI: _("Adfali"),
}
PROVIDERS = {ProviderName.SANDBOX: _("Sandbox"), ProviderName.PLUTU: _("Plutu")}
MODES = {ApplicationMode.TEST: _("Test mode"), ApplicationMode.LIVE: _("Live mode")}
STATUSES = {
    IntentStatus.SUCCEEDED: _("Paid"),
    IntentStatus.REQUIRES_PAYMENT_METHOD: _("Waiting for payment"),
    IntentStatus.PROCESSING: _("Processing"),
    IntentStatus.CANCELED: _("Expired"),
}
TONES = {
    IntentStatus.SUCCEEDED: "good",
    IntentStatus.REQUIRES_PAYMENT_METHOD: "waiting",
    IntentStatus.PROCESSING: "waiting",
    IntentStatus.CANCELED: "quiet",
}
ATTEMPT_STATES = {
    AttemptState.AWAITING_CODE: _("Waiting for the customer's code"),
    AttemptState.AWAITING_REDIRECT: _("On the provider's page"),
    AttemptState.SENT: _("Sent to the provider"),
    AttemptState.UNKNOWN: _("Outcome unknown"),
    AttemptState.PAID: _("Paid"),
    AttemptState.DECLINED: _("Declined"),
    AttemptState.ABANDONED: _("Left unfinished"),
    AttemptState.DUPLICATE: _("Duplicate payment"),
}
PROVIDER_ANSWERS = {
    RecordedAnswer.PAID: _("Paid"),
    RecordedAnswer.DECLINED: _("Declined"),
    RecordedAnswer.NOT_PAID: _("Not paid so far"),
    RecordedAnswer.UNKNOWN: _("The provider did not say"),
    RecordedAnswer.NOT_SUPPORTED: _("The provider cannot be asked"),
}


def wrong_code_label(number: int) -> str:
    """Return the text of a timeline for a wrong one-time code, the customer's entry `number`."""
    label = gettext(
        "Wrong code entered (%(number)d of %(most)d); nothing was taken", number=number, most=MAX_CODE_TRIES
    )
    return str(label)
