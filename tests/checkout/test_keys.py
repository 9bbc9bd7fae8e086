"""The checkout with exactly its own keys, and with keys of a KMS that is away at times."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shared.domain.applications.provider_accounts import ProviderName, set_provider_account
from shared.domain.payment_methods import PaymentMethod
from shared.platform.encryption import DecryptionError
from shared.platform.keys import open_keys
from shared.platform.settings import KeyPurpose
from tests.checkout.test_payments import PAID
from tests.checkout.world import CheckoutWorld
from tests.process_keys import BOXES, KEYS, with_own_keys
from tests.transit_server import TransitServer
from tests.waiting import eventually

CREDENTIALS = {"api_key": "k", "access_token": "t", "secret_key": "s"}


@pytest.fixture
def kms(world: CheckoutWorld, tmp_path: Path) -> Iterator[TransitServer]:
    """A KMS with the keys of stored texts. The session keys are local."""
    with TransitServer().running() as server:
        own = {KeyPurpose.SESSIONS: KEYS[KeyPurpose.SESSIONS]}
        transit = server.settings(tmp_path, timeout_s=5.0)
        world.settings = replace(world.settings, secret_keys=(), keys=own, transit=transit)
        yield server


@pytest.mark.parametrize("process", ["checkout", "checkout-verifier"])
def test_provider_credentials_are_decrypted_with_the_keys_of_the_process(
    world: CheckoutWorld, process: str
) -> None:
    world.settings = with_own_keys(world.settings, process)
    world.use_live_application()
    with world.database.transaction() as connection:
        account = set_provider_account(
            connection,
            BOXES[KeyPurpose.PROVIDER_CREDENTIALS],
            world.application.id,
            PaymentMethod.CARD,
            provider=ProviderName.PLUTU,
            credentials=CREDENTIALS,
        )
        assert world.dependencies.providers.plutu_secrets(connection.cursor(), account) == ["s", "s"]


def test_customer_pays_with_a_code_and_only_the_customer_keys_decrypt_the_phone(world: CheckoutWorld) -> None:
    """Cookies, forms and the phone that is filled in again work with the session keys of the checkout."""
    world.settings = with_own_keys(world.settings, "checkout")
    intent = world.make_intent()
    with world.serve():
        customer = world.customer(intent)
        customer.pay_by_wallet("sadad", "0913632323")
        ((attempt, encrypted),) = world.rows("select attempt_id, encrypted_phone from code_challenges")
        customer.enter_code("111111")
        assert customer.title == PAID
    context = f"code_challenge/{attempt}"
    assert "0913632323" in BOXES[KeyPurpose.CUSTOMER_DATA].decrypt(encrypted, context)
    for purpose in set(KeyPurpose) - {KeyPurpose.CUSTOMER_DATA}:
        with pytest.raises(DecryptionError):
            BOXES[purpose].decrypt(encrypted, context)


def test_customer_pays_with_keys_of_a_kms(world: CheckoutWorld, kms: TransitServer) -> None:
    intent = world.make_intent()
    with world.serve():
        customer = world.customer(intent)
        customer.pay_by_wallet("sadad", "0913632323")
        ((encrypted,),) = world.rows("select encrypted_phone from code_challenges")
        assert encrypted.startswith("m1.transit.mizan-customer-data.")
        kms.is_away = True
        customer.enter_code("111111")
        assert customer.title == PAID
    assert kms.count("decrypt") == 0


def test_payment_goes_on_if_the_phone_cannot_be_encrypted(world: CheckoutWorld, kms: TransitServer) -> None:
    """The provider has sent the code by then. Only sending it again is not possible."""
    intent = world.make_intent()
    with world.serve():
        customer = world.customer(intent)
        customer.open()
        kms.is_away = True
        customer.pay_by_wallet("sadad", "0913632323")
        assert world.rows("select encrypted_phone from code_challenges") == [(None,)]
        customer.enter_code("111111")
        assert customer.title == PAID
    assert [charge["status"] for charge in world.charges(intent)] == ["paid"]


def test_page_says_try_again_while_credentials_cannot_be_unwrapped(
    world: CheckoutWorld, kms: TransitServer
) -> None:
    """Before anything is charged. It works again when the KMS is back."""
    world.use_live_application()
    with world.database.transaction() as connection:
        set_provider_account(
            connection,
            open_keys(world.settings).open_box(KeyPurpose.PROVIDER_CREDENTIALS),
            world.application.id,
            PaymentMethod.CARD,
            provider=ProviderName.PLUTU,
            credentials=CREDENTIALS,
        )
    intent = world.make_intent()
    with world.serve():
        kms.is_away = True
        customer = world.customer(intent)
        answer = customer.open()
        assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "1"), answer.text
        kms.is_away = False
        # The next call is made after a second at the latest.
        eventually(lambda: customer.open().status_code == 200)
