"""The wallet that a customer entered for an intent, kept in the session of their browser to fill the form again.

It is encrypted, although only that browser has the cookie: cookies end up in logs and on disks. Nobody else who
has the link sees the phone number.
"""

from uuid import UUID

from flask import session

from services.checkout.providers.interface import Wallet
from shared.platform.encryption import DecryptionError, SecretBox, WrongPurposeError

_WALLET = "wallet"


class EnteredWallets:
    def __init__(self, box: SecretBox) -> None:
        self._box = box

    def remember(self, intent: UUID, wallet: Wallet) -> None:
        text = f"{wallet.phone} {wallet.birth_year or ''}"
        session[_WALLET] = self._box.encrypt(text, _purpose(intent))

    def find(self, intent: UUID) -> Wallet | None:
        """Return what this browser entered last, or None if that was for another intent or cannot be decrypted."""
        encrypted = session.get(_WALLET)
        if encrypted is None:
            return None
        try:
            phone, _, birth_year = self._box.decrypt(encrypted, _purpose(intent)).partition(" ")
        except (DecryptionError, WrongPurposeError):
            return None
        return Wallet(phone, int(birth_year) if birth_year else None)

    def forget(self, intent: UUID) -> None:
        """Remove the wallet of this intent, which was paid."""
        if self.find(intent) is not None:
            del session[_WALLET]


def _purpose(intent: UUID) -> str:
    return f"entered_wallet/{intent}"
