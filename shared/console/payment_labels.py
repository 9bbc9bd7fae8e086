"""Labels for payments: methods and statuses. Templates know this module as `payment_labels`."""

from flask_babel import lazy_gettext as _

from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod

METHODS = {
    PaymentMethod.CARD: _("Bank card"),
    PaymentMethod.SADAD: _("Sadad"),
    PaymentMethod.ADFALI: _("Adfali"),
}
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
