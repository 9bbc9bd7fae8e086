"""Damage to webhooks as receivers see them, planted into a correct history, is named by the rule that it breaks."""

from dataclasses import replace

import pytest

from chaos.history import DeliveryShown, Record, ResendRequested, TryShown
from tests.chaos.planted import (
    Planted,
    add_run,
    assert_named,
    both,
    change_request,
    drop,
    find_record,
    names,
    never_listed,
    never_sent,
    planted,
    repeat_request,
    request_of,
    sign_with,
)
from tests.chaos.run_builder import CANCELED, SUCCEEDED, delivery_id, sign, webhook_body
from tests.chaos.sample_run import ALPHA_NEW_URL, ALPHA_URL, NEW, OLD, build_sample

_CARD = delivery_id("card", SUCCEEDED)
_RETRIED = delivery_id("retried", SUCCEEDED)
_ACROSS_ROLL = delivery_id("across-roll", SUCCEEDED)
_AFTER_ROLL = delivery_id("after-roll", SUCCEEDED)
_AFTER_URL = delivery_id("after-url", SUCCEEDED)
_CODE = delivery_id("code", SUCCEEDED)


def _send_with_second_id(records: list[Record]) -> list[Record]:
    """Send a change as a second delivery, which is listed and succeeds like the first."""
    body = webhook_body("delivery-second", SUCCEEDED, "after-roll")
    shown = find_record(records, DeliveryShown, delivery=_AFTER_ROLL)
    tried = find_record(records, TryShown, delivery=_AFTER_ROLL)
    return [
        *records,
        replace(request_of(records, _AFTER_ROLL), body=body, signature=sign(body, NEW)),
        replace(shown, delivery="delivery-second"),
        replace(tried, delivery="delivery-second"),
    ]


PLANTED = [
    planted(
        "a body has another field",
        sign_with(OLD, _CARD, body=webhook_body(_CARD, SUCCEEDED, "card")[:-1] + ',"amount":25000}'),
        "body-is-as-specified",
    ),
    planted(
        "a body has another field in data",
        sign_with(OLD, _CARD, body=webhook_body(_CARD, SUCCEEDED, "card")[:-2] + ',"status":"succeeded"}}'),
        "body-is-as-specified",
    ),
    planted(
        "a webhook has an event that is not sent",
        add_run(
            lambda run: run.deliver(
                "beta", "code", "payment_intent.created", [(71, "200")], secret="whsec_beta"
            )
        ),
        "body-is-as-specified",
    ),
    planted(
        "a body cannot be read",
        sign_with(NEW, _AFTER_ROLL, body="null"),
        "body-is-as-specified",
        "change-is-received",
        "answered-try-was-received",
    ),
    planted(
        "a webhook comes to another application too",
        repeat_request(_CODE, 107, application="dead", url="https://dead.test/hook"),
        "webhook-goes-to-its-application",
        "signature-is-valid",
        "retries-keep-secret-and-url",
    ),
    planted("a change has two ids", _send_with_second_id, "one-id-per-change"),
    planted(
        "an id is of two changes",
        sign_with(NEW, _CARD, 1, body=webhook_body(_CARD, SUCCEEDED, "retried")),
        "one-id-per-change",
    ),
    planted(
        "a webhook about a success that was none",
        add_run(
            lambda run: run.deliver(
                "alpha", "declined", SUCCEEDED, [(200, "200")], secret=NEW, url=ALPHA_NEW_URL
            )
        ),
        "no-webhook-without-change",
        "retrieval-after-receipt-is-not-older",
    ),
    planted(
        "a webhook about an expiry that was none",
        add_run(
            lambda run: run.deliver("alpha", "open", CANCELED, [(399, "200")], secret=NEW, url=ALPHA_NEW_URL)
        ),
        "no-webhook-without-change",
        "never-canceled-early",
        "retrieval-after-receipt-is-not-older",
    ),
    planted(
        "an expiry of an intent that nobody created",
        add_run(
            lambda run: run.deliver("alpha", "ghost", CANCELED, [(302, "200")], secret=NEW, url=ALPHA_NEW_URL)
        ),
        "no-webhook-without-change",
    ),
    planted(
        "more intents that nobody knows than creates without an answer",
        add_run(lambda run: run.deliver("beta", "ghost", CANCELED, [(304, "200")], secret="whsec_beta")),
        "no-webhook-without-change",
    ),
    planted(
        "a success of an intent that nobody knows",
        add_run(lambda run: run.deliver("beta", "unknown", SUCCEEDED, [(200, "200")], secret="whsec_beta")),
        "no-webhook-without-change",
    ),
    planted(
        "an event is lost",
        both(
            never_sent(delivery_id("late", SUCCEEDED)),
            never_listed(delivery_id("late", SUCCEEDED)),
        ),
        "change-is-received",
        "change-has-a-delivery",
    ),
    planted(
        "the event of an expiry is lost",
        both(never_sent(delivery_id("late", CANCELED)), never_listed(delivery_id("late", CANCELED))),
        "change-is-received",
        "change-has-a-delivery",
    ),
    planted(
        "a delivery is claimed, but was never received",
        never_sent(_AFTER_URL),
        "change-is-received",
        "answered-try-was-received",
    ),
    planted(
        "an event of a dead receiver is lost",
        both(
            never_sent(delivery_id("undeliverable", SUCCEEDED)),
            never_listed(delivery_id("undeliverable", SUCCEEDED)),
        ),
        "change-has-a-delivery",
    ),
    planted("a signature is wrong", change_request(_CARD, signature="0" * 64), "signature-is-valid"),
    planted(
        "a signature is in capitals",
        change_request(_CARD, signature=str(request_of(build_sample(), _CARD).signature).upper()),
        "signature-is-valid",
    ),
    planted(
        "a signature lacks the prefix of the secret",
        sign_with(OLD.removeprefix("whsec_"), _CARD),
        "signature-is-valid",
    ),
    planted("a signature is missing", change_request(_CARD, signature=None), "signature-is-valid"),
    planted("a secret of another application", sign_with("whsec_beta", _AFTER_URL), "signature-is-valid"),
    planted("an old secret after a roll", sign_with(OLD, _AFTER_URL), "secret-is-of-its-time"),
    planted(
        "a new secret for a retry that was queued before the roll",
        sign_with(NEW, _ACROSS_ROLL, 1),
        "secret-is-of-its-time",
        "retries-keep-secret-and-url",
    ),
    planted("a resend with the old secret", sign_with(OLD, _CARD, 1), "resend-uses-current-secret-and-url"),
    planted(
        "a resend to the old URL",
        change_request(_CARD, 1, url=ALPHA_URL),
        "resend-uses-current-secret-and-url",
    ),
    planted("an old URL after its change", change_request(_AFTER_URL, url=ALPHA_URL), "url-is-of-its-time"),
    planted(
        "a URL that was never set",
        change_request(_CODE, url="https://beta.test/other"),
        "url-is-of-its-time",
    ),
    planted(
        "a delivery of an application without a URL",
        add_run(lambda run: run.list_delivery("silent", "without-url", SUCCEEDED, "pending", [])),
        "url-is-of-its-time",
        "nothing-is-pending",
    ),
    planted(
        "a retry to another URL",
        change_request(_RETRIED, 2, url=ALPHA_NEW_URL),
        "retries-keep-secret-and-url",
        "url-is-of-its-time",
    ),
    planted(
        "a resend that nobody asked for",
        drop(ResendRequested, delivery=_CARD),
        "resend-is-one-try",
        "retries-keep-secret-and-url",
        "secret-is-of-its-time",
        "url-is-of-its-time",
    ),
]


@pytest.mark.parametrize("case", PLANTED, ids=names(PLANTED))
def test_damage_is_named(case: Planted) -> None:
    assert_named(case)
