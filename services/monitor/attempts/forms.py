"""What an operator says of an attempt, as the form gives it: anything can stand there."""

from collections.abc import Mapping
from dataclasses import dataclass

from flask_babel import gettext as _

from shared.domain.attempts.notes import (
    MAX_NOTE_LENGTH,
    MAX_REFERENCE_LENGTH,
    MIN_NOTE_LENGTH,
    InvalidNoteError,
    InvalidReferenceError,
    clean_note,
    clean_reference,
)
from shared.domain.attempts.operator_decision import AttemptSnapshot, OperatorDecision
from shared.domain.attempts.states import AttemptState

PAID = "paid"
NOT_PAID = "not_paid"
_MOST_SHOWN = 2 * MAX_NOTE_LENGTH
_MOST_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Given:
    """As it was typed, to be shown again, and what is wrong with it."""

    values: Mapping[str, str]
    errors: Mapping[str, str]

    @property
    def decision(self) -> OperatorDecision:
        is_paid = self.values["outcome"] == PAID
        return OperatorDecision(is_paid, self.values["reason"], self.values["reference"] if is_paid else "")


NOTHING_GIVEN = Given({}, {})


def read_decision(form: Mapping[str, str]) -> Given:
    values = _values(form, "outcome", "reason", "reference")
    errors: dict[str, str] = {}
    if values["outcome"] not in (PAID, NOT_PAID):
        errors["outcome"] = _("Say whether it was paid.")
    _check_explanation(values, "reason", errors)
    try:
        clean_reference(values["reference"])
    except InvalidReferenceError:
        errors["reference"] = _(
            "Enter the provider's reference: at most %(most)d characters, and no card or phone number.",
            most=MAX_REFERENCE_LENGTH,
        )
    return Given(values, errors)


def read_note(form: Mapping[str, str]) -> Given:
    values = _values(form, "note")
    errors: dict[str, str] = {}
    _check_explanation(values, "note", errors)
    return Given(values, errors)


def read_seen(form: Mapping[str, str]) -> AttemptSnapshot | None:
    """How the attempt stood when the form was made; None where the form is none of ours."""
    state, provider_requests = form.get("state", ""), form.get("provider_requests", "")
    is_number = (
        provider_requests.isascii()
        and provider_requests.isdecimal()
        and len(provider_requests) <= _MOST_DIGITS
    )
    if state not in set(AttemptState) or not is_number:
        return None
    return AttemptSnapshot(AttemptState(state), int(provider_requests))


def _values(form: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: form.get(name, "")[:_MOST_SHOWN] for name in names}


def _check_explanation(values: Mapping[str, str], name: str, errors: dict[str, str]) -> None:
    try:
        clean_note(values[name], name)
    except InvalidNoteError:
        errors[name] = _(
            "Write %(least)d to %(most)d characters, for whoever looks at it later.",
            least=MIN_NOTE_LENGTH,
            most=MAX_NOTE_LENGTH,
        )
