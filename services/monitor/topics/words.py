"""How a group stands, in a word and in a colour."""

from flask_babel import lazy_gettext as _

from shared.platform.kafka.inspection.health import Standing

STANDINGS = {
    Standing.FINE: _("Fine"),
    Standing.BEHIND: _("Behind"),
    Standing.STALLED: _("Stalled"),
    Standing.NOBODY: _("Nobody consumes"),
    Standing.AWAY: _("Away"),
}
TONES = {
    Standing.FINE: "good",
    Standing.BEHIND: "bad",
    Standing.STALLED: "bad",
    Standing.NOBODY: "bad",
    Standing.AWAY: "bad",
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
