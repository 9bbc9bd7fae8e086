"""The model of a payment does what the product does on PostgreSQL: random walks through the model, taken with both.

The rules are the product's own functions in both. This compares the rest, which is SQL in the product: what is
written when an attempt starts, settles and expires, and the event history.
"""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
from psycopg import Connection

from services.checkout.payments import one_time_codes
from services.scheduler.jobs.expiry import IntentExpiry
from shared.domain.attempts.provider_exchange import AttemptOutcome, ProviderRequest, StatusInquiry
from shared.domain.attempts.settlement import (
    make_inquiry,
    settle_decision,
    settle_inquiry,
    settle_notification,
    settle_response,
)
from shared.domain.attempts.start import start_attempt, submit_code
from shared.domain.attempts.states import ProviderAnswer
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.states import EventType
from shared.domain.intents.store import create_or_find
from shared.platform.database.pool import Database
from tests.clock import Clock
from tests.model.payment_actions import all_steps
from tests.model.payment_model import PaymentModel
from tests.model.payment_state import (
    HAS_STATUS_CALL,
    INITIAL_STATE,
    TICK,
    WINDOW,
    Action,
    Bounds,
    Method,
    State,
)
from tests.model.payment_transitions import limit_codes

T = TypeVar("T")
BOUNDS = Bounds(attempts=3, requests=3, ticks=4, methods=tuple(Method))
LENGTH = 40
_ROWS = """
select t.state, t.provider_requests, t.sent_at, t.next_verify_at is not null
from payment_attempts as t where t.intent_uuid = %s order by t.id"""


class Product:
    """One intent in the database, on which the actions of the model are taken."""

    def __init__(self, database: Database, clock: Clock, moment: datetime) -> None:
        self._database = database
        self._clock = clock
        self._now = moment
        clock.stop_at(moment)
        expires_at = moment + timedelta(days=1)
        with database.cursor() as cursor:
            new = NewIntent(uuid4(), "order-1", 1_000, "LYD", expires_at=expires_at)
            self.intent = create_or_find(cursor, new)[0].uuid
            # A merchant cannot ask for so short a time.
            cursor.execute(
                "update payment_intents set expires_at = %s where uuid = %s",
                (moment + BOUNDS.ticks * TICK, self.intent),
            )
        self._attempts: list[UUID] = []
        self._requests: dict[tuple[int, int], ProviderRequest] = {}
        self._inquiries: dict[int, StatusInquiry] = {}

    def take(self, action: Action, before: State, after: State) -> None:
        """Take the action of the model that leads from `before` to `after`. What only the bank sees is nothing here."""
        index = action.attempt
        if action.name == "time passes":
            self._now += TICK
            self._clock.stop_at(self._now)
        elif action.name == "the expiry job runs":
            IntentExpiry(self._database).run_once()
        elif action.name == "the customer pays by":
            method, leaves = after.attempts[-1].method, action.detail.endswith("leaving the page")
            initial = INITIAL_STATE[method]
            provider = "sandbox" if method in HAS_STATUS_CALL else "plutu"
            request = self._commit(
                lambda c: start_attempt(c, self.intent, "card", provider, initial, leave_redirect=leaves)
            )
            self._requests[len(self._attempts), request.number] = request
            self._attempts.append(request.attempt)
        elif index is not None:
            self._take_on_attempt(action, index, before)

    def _take_on_attempt(self, action: Action, index: int, before: State) -> None:
        attempt = self._attempts[index]
        if action.name == "the customer enters a code":
            request = self._commit(lambda c: submit_code(c, attempt))
            self._requests[index, request.number] = request
        elif action.name == "its process settles":
            assert action.number is not None
            asked = self._requests[index, action.number]
            outcome = self._outcome(before, index, action.detail)
            self._commit(lambda c: settle_response(c, asked, outcome))
        elif action.name.startswith("a notification says"):
            answer = ProviderAnswer(action.name.removeprefix("a notification says "))
            self._commit(lambda c: settle_notification(c, attempt, AttemptOutcome(answer)))
        elif action.name.endswith("asks the provider"):
            with self._database.cursor() as cursor:
                inquiry = make_inquiry(cursor, attempt)
            assert inquiry is not None
            self._inquiries[index] = inquiry
        elif action.name == "the verifier settles":
            made = self._inquiries.pop(index)
            limited = limit_codes(ProviderAnswer(action.detail), before.attempts[index].codes_tried)
            outcome = self._outcome(before, index, limited)
            self._commit(lambda c: settle_inquiry(c, made, outcome))
        elif action.name == "an operator decides":
            decided = AttemptOutcome(ProviderAnswer(action.detail), is_from_operator=True)
            self._commit(lambda c: settle_decision(c, attempt, decided))

    def _outcome(self, before: State, index: int, answer: str) -> AttemptOutcome:
        can_inquire = before.attempts[index].method in HAS_STATUS_CALL
        return AttemptOutcome(ProviderAnswer(answer), can_inquire=can_inquire)

    def _commit(self, move: Callable[[Connection[Any]], T]) -> T:
        with self._database.transaction() as connection:
            return move(connection)

    def status(self) -> str:
        with self._database.cursor() as cursor:
            row = cursor.execute(
                "select status from payment_intents where uuid = %s", (self.intent,)
            ).fetchone()
        assert row is not None
        return str(row[0])

    def events(self) -> list[str]:
        with self._database.cursor() as cursor:
            rows = cursor.execute(
                "select type from intent_events where intent_uuid = %s order by seq", (self.intent,)
            ).fetchall()
        return [str(row[0]) for row in rows]

    def attempts(self) -> list[tuple[str, int, int | None, bool]]:
        """Return state, requests, ticks since the last request, and whether an inquiry is planned."""
        with self._database.cursor() as cursor:
            rows = cursor.execute(_ROWS, (self.intent,)).fetchall()
        return [
            (
                state,
                requests,
                None if sent_at is None else min(WINDOW, (self._now - sent_at) // TICK),
                planned,
            )
            for state, requests, sent_at, planned in rows
        ]


def _walk(product: Product, seed: int) -> list[str]:
    """Take a random walk with the model and with the product. Return the actions. Fails where they differ."""
    choose = random.Random(seed)
    state = PaymentModel(BOUNDS).initial()
    taken: list[str] = []
    events: list[str] = [EventType.CREATED]
    for _ in range(LENGTH):
        steps = [(action, after) for action, after in all_steps(state, BOUNDS) if after != state]
        if not steps:
            break
        # Each kind of action is equally likely, so that requests and notifications do not crowd out the others.
        name = choose.choice(sorted({action.name for action, _ in steps}))
        action, after = choose.choice([step for step in steps if step[0].name == name])
        taken.append(str(action))
        product.take(action, state, after)
        events += after.events
        state = after
        expected = [(one.state, one.requests, one.age, one.is_inquiry_planned) for one in state.attempts]
        assert (product.status(), product.attempts(), product.events()) == (state.intent, expected, events), (
            f"seed {seed}: the model and the product differ after: " + "; ".join(taken)
        )
    return taken


@pytest.mark.timeout(600)
@pytest.mark.parametrize("walks", [30, pytest.param(600, marks=pytest.mark.long)])
def test_product_and_model_take_the_same_steps(
    database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch, walks: int
) -> None:
    monkeypatch.setattr(one_time_codes, "MAX_CODE_TRIES", 2)
    seen: set[str] = set()
    for seed in range(walks):
        moment = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(days=2 * seed)
        seen.update(_walk(Product(database, clock, moment), seed))
    assert {"the expiry job runs", "attempt 1: an operator decides: declined"} <= seen
