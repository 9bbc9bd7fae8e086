"""Settings with the keys of one process, and no other, as it has them in production."""

from dataclasses import replace

from cryptography.fernet import Fernet

from shared.platform.encryption import SecretBox
from shared.platform.keys import PROCESS_PURPOSES
from shared.platform.settings import KeyPurpose, Settings

KEYS = {purpose: (Fernet.generate_key().decode(),) for purpose in KeyPurpose}
BOXES = {purpose: SecretBox(keys) for purpose, keys in KEYS.items()}


def with_own_keys(settings: Settings, process: str) -> Settings:
    own = {purpose: KEYS[purpose] for purpose in PROCESS_PURPOSES[process]}
    return replace(settings, secret_keys=(), keys=own)
