"""Labels for deliveries and their tries: status, event, failure, and how a bulk run ended.

Templates know this module as `delivery_labels`.
"""

from flask_babel import lazy_gettext as _

from shared.domain.deliveries.exhausted import GONE
from shared.domain.deliveries.try_results import NO_URL, TryFailure
from shared.domain.intents.states import EventType

RETRYING = "retrying"
"""The label's key of a pending delivery that was tried and did not arrive."""
STATUSES = {
    "pending": _("Pending"),
    RETRYING: _("Pending, retrying"),
    "succeeded": _("Succeeded"),
    "failed": _("Failed"),
    GONE: _("No longer kept"),
}
TONES = {"pending": "waiting", RETRYING: "waiting", "succeeded": "good", "failed": "bad", GONE: "quiet"}
EVENTS = {EventType.SUCCEEDED: _("Payment succeeded"), EventType.CANCELED: _("Payment expired")}
FAILURES = {
    TryFailure.DNS: _("Name not found"),
    TryFailure.REFUSED: _("Connection refused"),
    TryFailure.UNREACHABLE: _("Not reachable"),
    TryFailure.TLS: _("TLS error"),
    TryFailure.TIMEOUT: _("No answer in time"),
    TryFailure.BROKEN_ANSWER: _("Broken answer"),
    TryFailure.BLOCKED_ADDRESS: _("Address not allowed"),
    TryFailure.PROXY_UNREACHABLE: _("Our proxy: no answer"),
    TryFailure.PROXY_REFUSED: _("Our proxy: refused"),
    TryFailure.PROXY_ERROR: _("Our proxy: error"),
    NO_URL: _("No webhook URL"),
}
FAILURE_EXPLANATIONS = {
    TryFailure.DNS: _("The host name in the URL could not be found in the DNS."),
    TryFailure.REFUSED: _("Nothing listens at this address and port: the connection was refused."),
    TryFailure.UNREACHABLE: _("No connection could be made to this address."),
    TryFailure.TLS: _(
        "The TLS connection failed. The certificate may have expired, be for another name, or miss its chain."
    ),
    TryFailure.TIMEOUT: _("No response headers arrived within 10 seconds."),
    TryFailure.BROKEN_ANSWER: _("What came back is not a complete HTTP response."),
    TryFailure.BLOCKED_ADDRESS: _("The host name leads to an address that is not public. Nothing was sent."),
    TryFailure.PROXY_UNREACHABLE: _(
        "Webhooks leave Mizan through a proxy of its own, which gave no answer. Your server received nothing."
    ),
    TryFailure.PROXY_REFUSED: _(
        "Webhooks leave Mizan through a proxy of its own, which refused this one. Your server received nothing."
    ),
    TryFailure.PROXY_ERROR: _(
        "Webhooks leave Mizan through a proxy of its own, which could not connect to this address. If it happens "
        "again, check whether your server accepts connections."
    ),
    NO_URL: _("The webhook URL was removed before this try came due. Nothing was sent."),
}
RUN_OUTCOMES = {
    None: _("In progress"),
    "done": _("Done"),
    "stopped": _("Stopped"),
    "no_url": _("Ended: the webhook URL was removed"),
    "paused": _("Ended: an operator has paused the webhooks"),
}
"""How resending many deliveries, or replaying many dead letters, ended; None while it runs."""
RUN_TONES = {None: "waiting", "done": "good", "stopped": "quiet", "no_url": "bad", "paused": "bad"}


def status_key(status: str, tries: int) -> str:
    """Return the key of the status in STATUSES: a pending delivery that was tried before is being retried."""
    return RETRYING if status == "pending" and tries else status
