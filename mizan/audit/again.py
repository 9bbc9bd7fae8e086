"""A second look at what may only have been under way when it was seen first."""

from collections.abc import Callable
from time import sleep

from mizan.audit.checks import MOST_FINDINGS, Found, found

LOOK_AGAIN_AFTER_S = (1.0, 2.0, 4.0)

Say = Callable[[str], None]
"""Tells a person how far it is."""


def until_sure(suspected: Found, look_again: Callable[[Found], Found], say: Say) -> Found:
    """What is wrong still, after some seconds."""
    for pause_s in LOOK_AGAIN_AFTER_S:
        if not suspected.findings:
            break
        say("once more, what may only be under way")
        sleep(pause_s)
        suspected = look_again(suspected)
    return suspected


def still_there(before: Found, now: Found) -> Found:
    """What was found before and is found again. Where not all of it is known, all that is found now counts."""
    known = {(finding.check.name, finding.id) for finding in before.findings}
    cut = {name for name, total in before.totals.items() if total > MOST_FINDINGS}
    kept = [
        finding
        for finding in now.findings
        if finding.check.name in cut or (finding.check.name, finding.id) in known
    ]
    totals = found(kept).totals
    return Found(kept, {name: now.totals[name] if name in cut else total for name, total in totals.items()})
