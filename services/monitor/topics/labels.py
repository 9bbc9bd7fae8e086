"""Labels and colours of the health of consumer groups, and labels of their states."""

from flask_babel import lazy_gettext as _

from shared.platform.kafka.inspection.health import Health

HEALTH = {
    Health.HEALTHY: _("Healthy"),
    Health.BEHIND: _("Behind"),
    Health.STALLED: _("Stalled"),
    Health.NO_MEMBERS: _("No consumers"),
    Health.UNKNOWN: _("Unknown"),
}
TONES = {
    Health.HEALTHY: "good",
    Health.BEHIND: "bad",
    Health.STALLED: "bad",
    Health.NO_MEMBERS: "bad",
    Health.UNKNOWN: "bad",
}
STATES = {
    "stable": _("stable"),
    "empty": _("empty"),
    "dead": _("unknown to Kafka"),
    "preparing rebalance": _("preparing to rebalance"),
    "completing rebalance": _("completing a rebalance"),
    "assigning": _("assigning"),
    "reconciling": _("reconciling"),
}
