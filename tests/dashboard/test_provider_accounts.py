"""Provider accounts are set by owners, and their credentials are never shown again."""

import requests

from shared.domain.accounts.roles import Role
from shared.domain.applications.modes import ApplicationMode
from shared.domain.applications.provider_accounts import current_provider_accounts
from shared.domain.payment_methods import PaymentMethod
from tests.dashboard.world import DashboardWorld
from tests.logs import capture_logs
from tests.page_client import PageClient

SECRETS = {"api_key": "hush-key-1", "access_token": "hush-token-1", "secret_key": "hush-secret-1"}


def page_of(world: DashboardWorld, method: str = "card") -> str:
    return f"/applications/{world.application.id}/settings/providers/{method}"


def settings_of(world: DashboardWorld) -> str:
    return f"/applications/{world.application.id}/settings"


def save(world: DashboardWorld, person: PageClient, method: str = "card", **fields: str) -> requests.Response:
    person.open(page_of(world, method))
    return person.post(page_of(world, method), **fields)


def test_owner_sets_a_provider_account(pages: DashboardWorld) -> None:
    """It is encrypted, and replaced rather than changed. No page or log shows its credentials."""
    with capture_logs(level="DEBUG") as log:
        owner = pages.person(Role.OWNER)
        answer = save(pages, owner, adapter="plutu", **SECRETS)
        assert (answer.history[0].status_code, owner.title) == (303, "Settings")
        assert "They pay with real money. Plutu" in owner.text
        seen = answer.text + owner.open(page_of(pages)).text + owner.open("/audit").text
        save(pages, owner, adapter="plutu", **{**SECRETS, "secret_key": " hush-secret-2\n"})
    with pages.database.cursor() as cursor:
        account = current_provider_accounts(cursor, pages.application.id)[PaymentMethod.CARD]
    assert account.decrypt_credentials(pages.box) == {**SECRETS, "secret_key": "hush-secret-2"}
    assert f"/providers/plutu/callbacks/{account.id}" in owner.open(settings_of(pages)).text
    assert pages.rows("select count(*) from provider_accounts") == [(2,)]
    rows = pages.rows("select details from audit_log where action = 'provider_set'")
    assert rows == [({"method": "card", "adapter": "plutu"},)] * 2
    assert "hush" not in seen + owner.response.text + log.getvalue()
    assert "hush" not in str(
        pages.rows(
            "select audit_log::text, (select encrypted_credentials from provider_accounts limit 1) from audit_log"
        )
    )


def test_unusable_credentials_are_refused_and_not_shown_again(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    for fields in (
        {**SECRETS, "api_key": ""},
        {**SECRETS, "access_token": "hush hush"},
        {**SECRETS, "secret_key": "hush\x00"},
        {**SECRETS, "secret_key": "متجر"},
        {**SECRETS, "secret_key": "hush" * 1000},
    ):
        answer = save(pages, owner, adapter="plutu", **fields)
        assert answer.status_code == 422, fields
        assert "This is empty, too long, or contains spaces" in owner.text, fields
        assert "Nothing was saved" in owner.text, fields
        assert "hush" not in answer.text, fields
    assert pages.rows("select count(*) from provider_accounts") == [(0,)]
    assert "provider_set" not in pages.audit()


def test_credential_fields_are_hidden_and_not_autocompleted(pages: DashboardWorld) -> None:
    page = pages.person(Role.OWNER).open(page_of(pages)).text
    assert page.count('type="password"') == page.count('autocomplete="off"') == 3


def test_live_application_never_pays_in_the_sandbox(pages: DashboardWorld) -> None:
    """A method without an account is not offered, nor one with an account of the sandbox from earlier versions."""
    pages.run(
        "insert into provider_accounts (application_id, method, adapter) select id, 'card', 'sandbox' from applications"
    )
    owner = pages.person(Role.OWNER)
    assert save(pages, owner, adapter="sandbox").status_code == 422
    owner.open(settings_of(pages))
    assert owner.text.count("Not offered It is enabled, but has no account that can be used.") == 3
    assert "A method without an account is not offered to customers." in owner.text
    owner.post(f"{settings_of(pages)}/methods", methods="card")
    assert owner.text.count("It is not enabled.") == 2


def test_test_application_pays_in_the_sandbox_and_has_no_provider_account(pages: DashboardWorld) -> None:
    pages.merchant = pages.make_merchant("Benghazi Books", ApplicationMode.TEST)
    pages.application = pages.merchant.application
    owner = pages.person(Role.OWNER)
    owner.open(settings_of(pages))
    assert owner.text.count("They pay in the sandbox: no money moves.") == 3
    assert "Set account" not in owner.text
    owner.open(page_of(pages))
    assert owner.response.status_code == 404
    assert owner.post(page_of(pages), adapter="plutu", **SECRETS).status_code == 404
    assert pages.rows("select count(*) from provider_accounts") == [(0,)]


def test_unknown_providers_and_methods_are_refused(pages: DashboardWorld) -> None:
    owner = pages.person(Role.OWNER)
    for adapter in ("", "paypal", "\x00"):
        assert save(pages, owner, adapter=adapter, **SECRETS).status_code == 422, adapter
    for method in ("paypal", "%00", "CARD"):
        assert owner.open(page_of(pages, method)).status_code == 404, method
