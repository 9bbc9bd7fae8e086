"""Which keys production refuses: missing ones, needless ones, and keys that are published or easy to guess.

No text repeats a value.
"""

from collections.abc import Collection, Sequence

from shared.platform.keys.purposes import PROCESS_PURPOSES, STORED_PURPOSES
from shared.platform.production.known_secrets import is_known_key
from shared.platform.settings import FALLBACK_VARIABLE, KEY_VARIABLES, KeyPurpose, Problems, Settings

_HOW_TO_MAKE_A_KEY = "make one with `mizan keys new`"


def find_key_problems(settings: Settings, process: str, *, needs_keys: bool = True) -> Problems:
    """Return the problems of all keys of this process. A key is a problem here if the process has no use for it.

    MIZAN_SECRET_KEYS is accepted beside the keys of a purpose, to decrypt with during an upgrade, and never instead.
    """
    purposes = PROCESS_PURPOSES[process]
    problems = dict(find_needless_keys(settings, purposes, f"The process {process}"))
    for purpose in sorted(purposes):
        keys = settings.keys.get(purpose) or ()
        found = _find_known(keys)
        if not keys and needs_keys and not _has_kms(settings, purpose):
            found = [_missing(purpose, settings)]
        if found:
            problems[KEY_VARIABLES[purpose]] = found
    if FALLBACK_VARIABLE not in problems and (known := _find_known(settings.secret_keys or ())):
        problems[FALLBACK_VARIABLE] = known
    return problems


def find_needless_keys(settings: Settings, purposes: Collection[KeyPurpose], who: str) -> Problems:
    """Return each variable that has keys of other purposes than these, or leads to a KMS that nobody needs here."""
    given = {variable: purpose for purpose, variable in KEY_VARIABLES.items() if settings.keys.get(purpose)}
    needless = [variable for variable, purpose in given.items() if purpose not in purposes]
    if settings.secret_keys and not purposes:
        needless.append(FALLBACK_VARIABLE)
    text = (
        f"{who} has no use for this key: remove it from its environment, so that whoever breaks into it "
        "does not get the key (docs/security.md, Keys)."
    )
    if settings.transit is not None and not set(purposes) & set(STORED_PURPOSES):
        needless.append("TRANSIT_URL")
    return {variable: [text] for variable in needless}


def _has_kms(settings: Settings, purpose: KeyPurpose) -> bool:
    return settings.transit is not None and settings.transit.encrypts and purpose in STORED_PURPOSES


def _missing(purpose: KeyPurpose, settings: Settings) -> str:
    if settings.secret_keys:
        return (
            f"Is missing. {FALLBACK_VARIABLE} only decrypts in production: give this process a key for "
            f"{purpose}, and keep {FALLBACK_VARIABLE} until `mizan keys reseal` has run (docs/upgrading.md, Keys)."
        )
    return f"Is missing. It is the key for {purpose}: {_HOW_TO_MAKE_A_KEY}."


def _find_known(keys: Sequence[str]) -> list[str]:
    known = [str(number) for number, key in enumerate(keys, 1) if is_known_key(key)]
    if not known:
        return []
    text = (
        f"Key {' and '.join(known)} of {len(keys)} is published or easy to guess: {_HOW_TO_MAKE_A_KEY}. If it was "
        "in use, put the new one before it, run `mizan keys reseal`, and remove it."
    )
    return [text]
