"""Opens every page that the dashboard can show, in one tab."""

from collections.abc import Iterator
from uuid import UUID, uuid4

from playwright.sync_api import expect

from services.dashboard.people.invitations import invite
from services.scheduler.jobs.bulk_resends import BulkResends
from shared.domain.accounts.joining import add_member
from shared.domain.accounts.roles import Role
from shared.domain.applications.merchants import create_merchant
from shared.domain.audit_log import Action, Actor, add_audit_entry
from tests.dashboard.browser.colleague import Colleague
from tests.dashboard.busy_shop import BusyShop, open_busy_shop
from tests.dashboard.world import PASSWORD, DashboardWorld

EXPECTED = frozenset({400, 403, 404, 410, 422})
"""The statuses that some of these pages have."""
MERCHANT = "Sahara Books"


def every_page(world: DashboardWorld, tab: Colleague) -> Iterator[str]:
    """Yield the name of each page while the tab shows it. The tab has to expect the statuses in EXPECTED."""
    with world.database.transaction() as connection:
        merchant_id = create_merchant(connection, MERCHANT)
    yield from _before_signing_in(world, tab, merchant_id)
    yield from _of_a_first_application(tab)
    shop = open_busy_shop(world, merchant_id)
    yield from _of_overview_and_payments(tab, shop)
    yield from _of_deliveries(world, tab, shop)
    yield from _of_webhook_and_credentials(tab, shop)
    yield from _of_settings(tab, shop)
    yield from _of_security_changes(world, tab, shop)
    yield from _of_people(world, tab, shop)
    yield from _error_pages(world, tab, merchant_id)


def _before_signing_in(world: DashboardWorld, tab: Colleague, merchant_id: UUID) -> Iterator[str]:
    with world.database.transaction() as connection:
        _, token = invite(connection, merchant_id, "new@example.ly", Role.VIEWER)
    tab.open(f"/invitations/{token}")
    tab.sees("Join the team")
    yield "invitation"
    tab.field("Password").fill("a" * 14)
    tab.button("Join").click()
    expect(tab.field("Password")).to_have_attribute("aria-invalid", "true")
    yield "invitation with an error"
    email = world.make_member(Role.VIEWER)
    with world.database.transaction() as connection:
        _, token = invite(connection, merchant_id, email, Role.VIEWER)
    tab.open(f"/invitations/{token}")
    tab.sees("Join the team")
    expect(tab.field("Password")).to_have_attribute("autocomplete", "current-password")
    yield "invitation of an account"
    world.run("update users set email_verified_at = null where email = %s", email)
    tab.open(f"/invitations/{token}")
    tab.reads(
        "This address already has an account, but nobody has confirmed that the address is theirs. So this link cannot "
        "be used. Ask for an invitation by email, or ask the operators of Mizan."
    )
    yield "invitation that needs an email"
    tab.open("/sign-in")
    tab.sees("Sign in")
    yield "sign-in"
    email = world.make_member(Role.OWNER, email=f"salma-{uuid4().hex[:8]}@example.ly")
    with world.database.transaction() as connection:
        add_member(connection, merchant_id, email, Role.OWNER, PASSWORD)
    _try_password(tab, email, "wrong")
    tab.reads("Email or password is not right.")
    yield "sign-in with an error"
    _try_password(tab, email, PASSWORD)
    tab.sees("Choose a merchant")
    yield "choose a merchant"
    tab.page.get_by_role("button", name=MERCHANT).click()


def _try_password(tab: Colleague, email: str, password: str) -> None:
    tab.field("Email").fill(email)
    tab.field("Password").fill(password)
    tab.button("Sign in").click()


def _of_a_first_application(tab: Colleague) -> Iterator[str]:
    tab.sees("Applications")
    tab.reads("There are no applications yet")
    yield "applications, none"
    tab.link("Create an application").click()
    tab.sees("Create an application")
    yield "new application"
    tab.field("Name").fill(" ")
    tab.field("Webhook URL (optional)").fill("https://user@shop.example.ly/")
    for method in ("Bank card", "Sadad", "Adfali"):
        tab.field(method).uncheck()
    tab.button("Create application").click()
    expect(tab.field("Name")).to_have_attribute("aria-invalid", "true")
    yield "new application with errors"
    tab.field("Name").fill("Sahara web shop")
    tab.field("Webhook URL (optional)").fill("")
    tab.field("Sadad").check()
    tab.button("Create application").click()
    tab.sees("The application was created")
    yield "created"
    tab.link("I have copied them: to the application").click()
    tab.sees("Overview")
    yield "overview, empty"
    tab.open("/")
    tab.sees("Applications")
    yield "applications"


def _of_overview_and_payments(tab: Colleague, shop: BusyShop) -> Iterator[str]:
    tab.open(shop.path())
    tab.sees("Overview")
    tab.reads("Payments by outcome")
    _unfold(tab)
    yield "overview, healthy"
    shop.begin_to_fail()
    tab.open(shop.path())
    tab.reads("Your endpoint is failing.")
    yield "overview, failing"
    tab.open(shop.path("payments"))
    tab.sees("Payments")
    tab.reads("Paid twice")
    yield "payments"
    tab.open(shop.path("payments?search=nothing"))
    tab.reads("No payment matches these filters")
    yield "payments, none that fits"
    tab.open(shop.path("payments?from=x&to=x&status=x"))
    tab.reads("Some filters cannot be used. Correct them to see payments.")
    yield "payments, filters wrong"
    tab.open(shop.path(f"payments/{shop.payment}"))
    tab.reads("Timeline")
    yield "payment"


def _unfold(tab: Colleague) -> None:
    tab.main.locator("details").evaluate_all("all => all.forEach((details) => { details.open = true; })")


def _of_deliveries(world: DashboardWorld, tab: Colleague, shop: BusyShop) -> Iterator[str]:
    tab.open(shop.path("deliveries"))
    tab.sees("Deliveries")
    expect(tab.main.get_by_role("row")).not_to_have_count(0)
    yield "deliveries"
    tab.open(shop.path(f"deliveries?id={uuid4()}"))
    tab.reads("No delivery matches")
    yield "deliveries, none that matches"
    tab.open(shop.path("deliveries?id=a%00b&from=x"))
    tab.reads("A reference cannot contain this text.")
    yield "deliveries, filters wrong"
    tab.open(shop.path(f"deliveries/{shop.delivery}"))
    tab.sees("Payment succeeded")
    _unfold(tab)
    yield "delivery"
    tab.open(shop.path("deliveries/resend-failed"))
    tab.sees("Resend failed deliveries")
    yield "resend failed"
    tab.button("Resend all of them").click()
    tab.sees("Resending failed deliveries")
    yield "resend failed, under way"
    while BulkResends(world.database).run_once() == 0.0:
        pass
    tab.page.reload()
    tab.reads("See what is still failed")
    yield "resend failed, done"
    tab.open(shop.path("deliveries/resend-failed"))
    expect(tab.main.get_by_role("table")).to_be_visible()
    yield "resend failed, earlier ones"


def _of_webhook_and_credentials(tab: Colleague, shop: BusyShop) -> Iterator[str]:
    tab.open(shop.path("webhook"))
    tab.sees("Webhook")
    yield "webhook"
    tab.field("URL").fill("https://user@shop.example.ly/")
    tab.button("Save URL").click()
    expect(tab.field("URL")).to_have_attribute("aria-invalid", "true")
    yield "webhook with an error"
    # As without the script, which would ask in a dialog.
    tab.page.evaluate("document.querySelector('form[action$=\"/webhook/secret\"]').submit()")
    tab.sees("Roll the webhook secret?")
    yield "roll secret, asked"
    tab.open(shop.path("webhook"))
    tab.confirm("Roll secret")
    tab.sees("The new webhook secret")
    yield "rolled"
    tab.open(shop.path("credentials"))
    tab.sees("Credentials")
    yield "credentials"
    tab.button("Issue an API key").click()
    tab.sees("A new API key")
    yield "issued"


def _of_settings(tab: Colleague, shop: BusyShop) -> Iterator[str]:
    tab.open(shop.path("settings"))
    tab.sees("Settings")
    yield "settings"
    tab.open(shop.path("settings/providers/card"))
    tab.reads("Use this Plutu account")
    yield "provider account"
    _enter_account(tab, "كلمة")
    expect(tab.main.get_by_role("alert")).to_be_visible()
    yield "provider account with an error"
    _enter_account(tab, "plutu-1")
    tab.sees("Settings")
    tab.reads("Addresses for Plutu")
    yield "settings with an account"


def _enter_account(tab: Colleague, text: str) -> None:
    for name in ("Plutu API key", "Plutu access token", "Plutu secret key"):
        tab.field(name).fill(text)
    tab.button("Use this Plutu account").click()


def _of_security_changes(world: DashboardWorld, tab: Colleague, shop: BusyShop) -> Iterator[str]:
    world.run("update sessions set password_at = null")
    tab.open(shop.path("webhook"))
    tab.field("URL").fill("https://shop.example.ly/other")
    tab.button("Save URL").click()
    tab.sees("Enter your password to continue")
    yield "password prompt"
    tab.field("Password").fill("wrong")
    tab.button("Continue").click()
    expect(tab.field("Password")).to_have_attribute("aria-invalid", "true")
    yield "password prompt with an error"
    tab.field("Password").fill(PASSWORD)
    tab.button("Continue").click()
    tab.reads("The webhook URL was saved. New deliveries go there.")
    with world.database.transaction() as connection:
        actor = Actor("cli operator mona (uid 1000)")
        add_audit_entry(connection, actor, Action.WEBHOOK_URL_SET, application_id=shop.application_id)
    tab.open(shop.path())
    expect(tab.button("Mark as seen")).to_be_visible()
    yield "overview with a notice of security changes"
    tab.link("See them in the audit log").click()
    tab.reads("Only security changes are shown.")
    yield "security changes"
    tab.button("Mark as seen").click()
    expect(tab.button("Mark as seen")).to_have_count(0)


def _of_people(world: DashboardWorld, tab: Colleague, shop: BusyShop) -> Iterator[str]:
    world.run(
        """with former as (
               insert into members (merchant_id, email, role, removed_at)
               select merchant_id, 'former@example.ly', 'developer', mizan_now() from applications where id = %s
               returning id)
           update credentials set issued_by = former.id from former where application_id = %s""",
        shop.application_id,
        shop.application_id,
    )
    tab.open("/team")
    tab.reads("Credentials of former members")
    yield "team with credentials of a former member"
    world.run("update credentials set issued_by = null where application_id = %s", shop.application_id)
    tab.open("/team")
    tab.sees("Team")
    tab.field("Email").fill("somebody@example.ly")
    tab.button("Invite").click()
    tab.reads("Invitation link")
    yield "team with an invitation"
    tab.field("Email").fill("somebody@example.ly")
    tab.button("Invite").click()
    expect(tab.field("Email")).to_have_attribute("aria-invalid", "true")
    yield "team with an error"
    tab.open("/audit")
    tab.sees("Audit log")
    yield "audit log"
    tab.open("/account")
    tab.sees("Your account")
    yield "account"
    tab.field("Current password").fill("wrong")
    tab.field("New password").fill("another long one to say")
    tab.button("Change password").click()
    expect(tab.field("Current password")).to_have_attribute("aria-invalid", "true")
    yield "account with an error"


def _error_pages(world: DashboardWorld, tab: Colleague, merchant_id: UUID) -> Iterator[str]:
    tab.page.locator("main form input[name=csrf_token]").first.evaluate(
        "token => { token.value = 'forged'; }"
    )
    tab.field("Current password").fill("wrong")
    tab.field("New password").fill("another long one to say")
    tab.button("Change password").click()
    tab.sees("This page was open for too long")
    yield "400"
    tab.open("/no/such/page")
    tab.sees("There is no such page")
    yield "404"
    tab.open("/invitations/long-used")
    tab.sees("This invitation is no longer valid")
    yield "410"
    world.run("update members set role = 'viewer' where merchant_id = %s", merchant_id)
    tab.open("/applications/new")
    tab.sees("Your role does not allow this")
    yield "403"
