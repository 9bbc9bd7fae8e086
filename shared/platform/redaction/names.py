"""Which names promise a secret, so that their values are hidden unseen."""

import re
from functools import lru_cache

# A name is sensitive when its last words are one of these: `new_password`, `X-API-Key`, `accessToken`.
_SENSITIVE_ENDING = re.compile(
    r"(?:password|passwordhash|passwd|pwd|passphrase|secret|token|authorization|cookie|credential|sessionid"
    r"|(?:api|access|secret|private|signing|signature|encryption|master)key|signature"
    r"|cardnumber|cardno|cardpan|cardexpiry|cardexpirydate|(?:expiry|exp)(?:month|year)"
    r"|cvc|cvv|csc|otp|(?:card|security|onetime|verification|confirmation|sms|pin|otp)code"
    r"|phone|mobile|(?:phone|mobile)(?:number|no)|msisdn|telephone"
    r"|birthyear|birthdate|birthday|dateofbirth|yearofbirth|dob)s?"
)
# Too common as an ending (`status_code`, `lifespan`): sensitive only when they are the whole name.
_SENSITIVE_WHOLE = re.compile(r"(?:code|pan|pin|tel|expiry|expirydate)s?")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=2048)
def is_sensitive_name(name: str) -> bool:
    """Whether a value with this name is hidden unseen; case, dashes, dots and underscores do not matter."""
    words = _words(name)
    endings = ("".join(words[start:]) for start in range(max(0, len(words) - 3), len(words)))
    whole = "".join(_words(name.rpartition(".")[2]))
    return any(map(_SENSITIVE_ENDING.fullmatch, endings)) or bool(_SENSITIVE_WHOLE.fullmatch(whole))


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(name)]
    while words and words[-1].isdecimal():
        words.pop()
    return words
