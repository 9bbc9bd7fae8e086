"""The dashboard with exactly its own keys: it shows new secrets, signatures, and takes provider credentials."""

import hashlib
import hmac
from dataclasses import replace

import pytest
from cryptography.fernet import Fernet

from shared.domain.accounts.roles import Role
from shared.domain.applications.provider_accounts import current_provider_accounts
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.domain.payment_methods import PaymentMethod
from shared.platform.encryption import DecryptionError
from shared.platform.settings import KeyPurpose
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.test_applications import create, find_secrets
from tests.dashboard.test_delivery_page import show
from tests.dashboard.test_provider_accounts import SECRETS, save
from tests.dashboard.world import DashboardWorld
from tests.process_keys import BOXES, with_own_keys


@pytest.fixture
def own(world: DashboardWorld) -> DashboardWorld:
    world.settings = with_own_keys(world.settings, "dashboard")
    world.box = BOXES[KeyPurpose.WEBHOOK_SECRETS]
    world.merchant = world.make_merchant("Benghazi Books")
    world.application = world.merchant.application
    return world


def test_new_application_shows_a_secret_that_only_the_webhook_keys_decrypt(own: DashboardWorld) -> None:
    """Its form works with the session keys."""
    with own.serve():
        _, _, secret = find_secrets(create(own.person(Role.OWNER)).text)
    ((made,),) = own.rows("select id from applications where name = 'Online shop'")
    with own.database.transaction() as connection:
        for purpose, box in BOXES.items():
            if purpose is KeyPurpose.WEBHOOK_SECRETS:
                assert decrypt_webhook_secret(connection, box, made, 1).text == secret
            else:
                with pytest.raises(DecryptionError):
                    decrypt_webhook_secret(connection, box, made, 1)


def test_provider_credentials_are_encrypted_with_the_provider_keys(own: DashboardWorld) -> None:
    with own.serve():
        save(own, own.person(Role.OWNER), adapter="plutu", **SECRETS)
    with own.database.cursor() as cursor:
        account = current_provider_accounts(cursor, own.application.id)[PaymentMethod.CARD]
    assert account.decrypt_credentials(BOXES[KeyPurpose.PROVIDER_CREDENTIALS]) == SECRETS
    with pytest.raises(DecryptionError):
        account.decrypt_credentials(BOXES[KeyPurpose.WEBHOOK_SECRETS])


def test_delivery_page_shows_the_signature(own: DashboardWorld) -> None:
    with own.serve():
        delivery = Deliveries(own.database, own.application.id).make()
        raw = show(own.person(Role.VIEWER), own, delivery)
    secret = own.application.webhook_secret
    expected = hmac.new(secret.encode(), raw["body-title"].encode(), hashlib.sha256).hexdigest()
    assert f"Service-Signature: {expected}" in raw["headers-title"]


def test_cookie_of_another_service_is_not_accepted(own: DashboardWorld) -> None:
    """Each service has session keys of its own."""
    with own.serve():
        person = own.person(Role.OWNER)
        assert person.open("/").url.endswith("/")
    other = {**own.settings.keys, KeyPurpose.SESSIONS: (Fernet.generate_key().decode(),)}
    own.settings = replace(own.settings, keys=other)
    with own.serve():
        assert "sign-in" in person.open("/").url
