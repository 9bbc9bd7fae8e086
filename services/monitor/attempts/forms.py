"""Parses and validates the forms about an attempt. Fields can contain anything."""

from collections.abc import Mapping
from dataclasses import dataclass

from flask_babel import gettext as _

from shared.domain.attempts.decision_rules import OperatorDecision
from shared.domain.attempts.notes import (
    MAX_NOTE_LENGTH,
    MAX_REFERENCE_LENGTH,
    MIN_NOTE_LENGTH,
    InvalidNoteError,
    InvalidReferenceError,
    clean_note,
    clean_reference,
)
from shared.domain.attempts.states import AttemptSnapshot, AttemptState

PAID = "paid"
NOT_PAID = "not_paid"
_MAX_SHOWN = 2 * MAX_NOTE_LENGTH
_MAX_DIGITS = 6


@dataclass(frozen=True, slots=True)
class FormInput:
    """The submitted values, to be shown again, and an error text for each invalid one."""

    values: Mapping[str, str]
    errors: Mapping[str, str]

    @property
    def decision(self) -> OperatorDecision:
        is_paid = self.values["outcome"] == PAID
        return OperatorDecision(is_paid, self.values["reason"], self.values["reference"] if is_paid else "")


EMPTY_INPUT = FormInput({}, {})


def parse_decision(form: Mapping[str, str]) -> FormInput:
    values = _values(form, "outcome", "reason", "reference")
    errors: dict[str, str] = {}
    if values["outcome"] not in (PAID, NOT_PAID):
        errors["outcome"] = _("Say whether it was paid.")
    _check_explanation(values, "reason", errors)
    try:
        if clean_reference(values["reference"]) is None and values["outcome"] == PAID:
            errors["reference"] = _("Enter the provider's reference of the payment. A payment needs one.")
    except InvalidReferenceError:
        errors["reference"] = _(
            "Enter the provider's reference: at most %(most)d characters, and no card or phone number.",
            most=MAX_REFERENCE_LENGTH,
        )
    return FormInput(values, errors)


def parse_note(form: Mapping[str, str]) -> FormInput:
    values = _values(form, "note")
    errors: dict[str, str] = {}
    _check_explanation(values, "note", errors)
    return FormInput(values, errors)


def parse_seen(form: Mapping[str, str]) -> AttemptSnapshot | None:
    """Return the state of the attempt that the form showed, or None if the form is malformed."""
    state, provider_requests = form.get("state", ""), form.get("provider_requests", "")
    is_number = (
        provider_requests.isascii()
        and provider_requests.isdecimal()
        and len(provider_requests) <= _MAX_DIGITS
    )
    if state not in set(AttemptState) or not is_number:
        return None
    return AttemptSnapshot(AttemptState(state), int(provider_requests))


def _values(form: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: form.get(name, "")[:_MAX_SHOWN] for name in names}


def _check_explanation(values: Mapping[str, str], name: str, errors: dict[str, str]) -> None:
    try:
        clean_note(values[name], name)
    except InvalidNoteError:
        errors[name] = _(
            "Write %(least)d to %(most)d characters for those who review this later.",
            least=MIN_NOTE_LENGTH,
            most=MAX_NOTE_LENGTH,
        )
