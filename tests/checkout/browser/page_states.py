"""Creates an intent in each state that a page shows, without a browser."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from shared.domain.applications.registry import NewApplication
from shared.domain.attempts.provider_exchange import AttemptOutcome
from shared.domain.attempts.settlement import settle_notification
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.intents.intent import Intent
from tests.checkout.browser import page_texts
from tests.checkout.browser.shopper import BANK
from tests.checkout.world import CheckoutWorld


def ready(world: CheckoutWorld) -> Intent:
    return world.make_intent()


def failed(world: CheckoutWorld) -> Intent:
    intent = world.make_intent()
    world.customer(intent).pay_by_card("4000000000000002")
    return intent


def code_needed(world: CheckoutWorld) -> Intent:
    intent = world.make_intent()
    world.customer(intent).pay_by_wallet("sadad", "0913632323")
    return intent


def wrong_code_entered(world: CheckoutWorld) -> Intent:
    intent = world.make_intent()
    customer = world.customer(intent)
    customer.pay_by_wallet("adfali", "0921234567")
    customer.enter_code("2222")
    return intent


def processing(world: CheckoutWorld) -> Intent:
    """Create an intent that is processing until the test settles it."""
    intent = world.make_intent()
    with world.database.transaction() as connection:
        start_attempt(connection, intent.uuid, "card", "sandbox", AttemptState.SENT)
    return intent


def paid(world: CheckoutWorld) -> Intent:
    intent = processing(world)
    settle_as_paid(world, intent)
    return intent


def settle_as_paid(world: CheckoutWorld, intent: Intent) -> None:
    with world.database.transaction() as connection:
        settle_notification(connection, world.attempt_ids(intent)[-1], AttemptOutcome(ProviderAnswer.PAID))


def expired(world: CheckoutWorld) -> Intent:
    intent = world.make_intent()
    with world.database.transaction() as connection:
        connection.execute(
            "update payment_intents set expires_at = mizan_now() where uuid = %s", (intent.uuid,)
        )
    return intent


def without_method(world: CheckoutWorld) -> Intent:
    poor = world.make_application(NewApplication("no methods", "Tripoli Coffee", frozenset()))
    return world.make_intent(application_id=poor.id)


def on_the_banks_page(world: CheckoutWorld) -> Intent:
    intent = world.make_intent()
    with world.database.transaction() as connection:
        request = start_attempt(connection, intent.uuid, "card", "plutu", AttemptState.AWAITING_REDIRECT)
        connection.execute(
            "insert into provider_pages (attempt_id, url) values (%s, %s)",
            (request.attempt, f"{BANK}pay/7?step=1"),
        )
    return intent


@dataclass(frozen=True)
class Shown:
    name: str
    title: str
    make: Callable[[CheckoutWorld], Intent]


SHOWN = (
    Shown("ready", page_texts.READY, ready),
    Shown("failed", page_texts.READY, failed),
    Shown("code", page_texts.CODE, code_needed),
    Shown("wrong code", page_texts.CODE, wrong_code_entered),
    Shown("processing", page_texts.PROCESSING, processing),
    Shown("paid", page_texts.PAID, paid),
    Shown("expired", page_texts.EXPIRED, expired),
    Shown("no method", page_texts.NO_METHOD, without_method),
    Shown("redirect open", page_texts.REDIRECT_OPEN, on_the_banks_page),
)


def break_database(world: CheckoutWorld) -> None:
    """Break the database: no page of this test can be rendered any more."""
    with world.database.transaction() as connection:
        connection.execute("alter table payment_intents rename to gone")


def unknown_link(world: CheckoutWorld, lang: str) -> str:
    return f"{world.url}/pay/{uuid4()}" + ("?lang=en" if lang == "en" else "")
