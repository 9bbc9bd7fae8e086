"""`mizan pay`: pays an intent in the sandbox, through the checkout, without a browser."""

from contextlib import closing

import click

from mizan.command_context import command_settings, open_transaction
from mizan.intent import find_one_intent
from mizan.output import json_option, show_values
from mizan.sandbox import check_is_test_application, require_sandbox
from services.sandbox.checkout_client import WAIT_S, CheckoutClient, Payment
from shared.domain.intents.states import IntentStatus
from shared.domain.payment_methods import PaymentMethod

_WALLETS = [method.value for method in PaymentMethod if method is not PaymentMethod.CARD]


@click.command("pay")
@click.argument("name", metavar="INTENT")
@click.option("--card", help="A test card of docs/sandbox.md, such as 4242424242424242.")
@click.option("--expiry", default="12/40", show_default=True, help="Expiry date of the card.")
@click.option("--security-code", default="123", show_default=True, help="Security code of the card.")
@click.option("--wallet", type=click.Choice(_WALLETS), help="Pay with this wallet instead of a card.")
@click.option("--phone", help="Phone number of the wallet, such as 0913632323.")
@click.option(
    "--birth-year", default="1999", show_default=True, help="Birth year of the owner of a Sadad wallet."
)
@click.option("--code", help="The code to enter, if one is asked for. [default: the right one]")
@click.option(
    "--wait",
    "wait_s",
    type=click.FloatRange(min=0),
    default=WAIT_S,
    show_default=True,
    help="Seconds to wait for the result of a payment that is being confirmed.",
)
@json_option
def pay_command(
    name: str,
    *,
    card: str | None,
    expiry: str,
    security_code: str,
    wallet: str | None,
    phone: str | None,
    birth_year: str,
    code: str | None,
    wait_s: float,
    as_json: bool,
) -> None:
    """Pay an intent in the sandbox, as a customer does at the checkout. Exit code 0 only if it is paid.

    INTENT is its uuid, its reference or its merchant_reference. Refused without a sandbox, and in production.
    """
    if (card is None) == (wallet is None):
        raise click.UsageError("Give either --card or --wallet.")
    if wallet is None:
        payment = Payment.by_card(card or "", expiry, security_code, code)
    elif phone is None:
        raise click.UsageError("A wallet needs --phone.")
    else:
        payment = Payment.by_wallet(PaymentMethod(wallet), phone, birth_year, code)
    with command_settings() as settings:
        require_sandbox(settings)
        with open_transaction(settings) as connection:
            uuid, application_id, _, _ = find_one_intent(connection, name)
            check_is_test_application(connection, application_id)
        with closing(CheckoutClient(settings.public_urls.checkout, uuid)) as client:
            client.pay(payment, wait_s)
    values = {"uuid": uuid, "status": IntentStatus.SUCCEEDED, "method": payment.method}
    show_values(values, as_json=as_json, note="Paid in the sandbox; no money was moved.")
