"""A system with every problem that the monitor can show."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from uuid import UUID, uuid4

from shared.domain.audit_log import Actor
from shared.domain.dead_letters.replays import start_replay_run
from shared.domain.deliveries.bulk_resend import resend_all_exhausted
from shared.domain.messages import DeliveryExhausted, encode
from shared.domain.topics import WEBHOOKS_DEAD, WEBHOOKS_DELAY, WEBHOOKS_DELIVER
from shared.platform.settings import MonitorSettings
from tests.dashboard.delivery_rows import Deliveries
from tests.monitor.operator_payments import OperatorPayments
from tests.monitor.rows import make_event
from tests.monitor.topic_records import Records
from tests.monitor.world import MonitorWorld
from tests.shared.domain.attempts.deciding import LIMIT, Deciding
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic

LONG = "مكتبة بنغازي " + "W" * 120
_SOMEBODY = Actor(
    f"cli operator {'m' * 32} (uid 4294967294)",
    address=f"{'h' * 63}.internal.example.ly, container 4f2a1b3c4d5e",
)
"""As long as the name of a system's account and a host can be."""


class FailingSystem:
    def __init__(self, world: MonitorWorld, dead_letter_topic: DeadLetterTopic) -> None:
        self.world = world
        self.dead_letter_topic = dead_letter_topic
        _, application = world.make_application(LONG)
        self.application = application.id
        self.deliveries = Deliveries(world.database, self.application)
        self.payments = OperatorPayments(world)
        self.undecided = self.payments.unknown()
        self.duplicate = self.payments.duplicate("r" * 200)
        self.exhausted = self._exhaust()
        self._add_dead_letters()
        make_event(world, "succeeded")
        self._poll()

    def pages(self, say: Callable[..., str]) -> Iterator[tuple[str, str, str]]:
        """Yield the name, path and heading of every page. The state of the system changes between pages.

        `say` translates a heading into the language of the operator.
        """
        yield "overview", "/", say("Overview")
        yield "topics", "/topics", say("Topics and consumers")
        for topic in ("webhooks.deliver", "webhooks.delay.3", "dead_letters"):
            yield f"topic {topic}", f"/topics/{topic}", topic
        yield from self._dead_letters(say)
        yield from self._exhausted_deliveries(say)
        yield "attempts", "/attempts", say("Payment attempts")
        asked, answered, proposed = self._ask_and_propose()
        yield "attempts, some to approve", "/attempts", say("Payment attempts")
        for name, attempt in (
            ("undecided attempt", self.undecided),
            ("duplicate", self.duplicate),
            ("attempt whose provider is being asked", asked),
            ("attempt whose provider has answered", answered),
            ("attempt with a proposed decision", proposed),
        ):
            reference = self._reference(attempt)
            yield name, f"/attempts/{attempt}", say("Payment attempt %(reference)s", reference=reference)
        yield "search", "/search", say("Search payments")
        yield "search, with matches", f"/search?search={'r' * 20}", say("Search payments")
        yield "search, nothing found", "/search?search=nobody", say("Search payments")
        yield "applications", "/applications", say("Applications")
        yield "applications, none that fits", "/applications?search=nobody", say("Applications")
        yield "application", f"/applications/{self.application}", f"{LONG} shop"
        self._pause()
        yield "paused application", f"/applications/{self.application}", f"{LONG} shop"
        yield "log", "/log", say("Audit log")
        yield "account", "/account", say("Your account")
        yield "unknown page", "/no/such/page", say("There is no such page")

    def _dead_letters(self, say: Callable[..., str]) -> Iterator[tuple[str, str, str]]:
        yield "dead letters", "/dead-letters", say("Dead letters")
        none_that_fits = "/dead-letters?origin=checkout.verify"
        yield "dead letters, none that fits", none_that_fits, say("Dead letters")
        yield "dead letter", "/dead-letters/0", say("Dead letter")
        yield "replay many", "/dead-letters/replay-all", say("Replay dead letters")
        in_progress = f"/dead-letters/replays/{self._replay_many()}"
        yield "replay many, under way", in_progress, say("Replaying dead letters")

    def _exhausted_deliveries(self, say: Callable[..., str]) -> Iterator[tuple[str, str, str]]:
        yield "exhausted", "/exhausted", say("Exhausted deliveries")
        yield "exhausted delivery", f"/exhausted/{self.exhausted}", say("Delivery")
        yield "resend many", "/exhausted/resend-all", say("Resend all of a period")
        yield "resends, none", "/exhausted/resends", say("Resends of many deliveries")
        in_progress = f"/exhausted/resends/{self._resend_many()}"
        yield "resends of one", in_progress, say("Resending failed deliveries")
        yield "resends", "/exhausted/resends", say("Resends of many deliveries")

    def _reference(self, attempt: UUID) -> str:
        statement = """select upper(reference) from payment_intents
                       where uuid = (select intent_uuid from payment_attempts where id = %s)"""
        return str(self.world.rows(statement, attempt)[0][0])

    def _exhaust(self) -> UUID:
        made = self.deliveries.make("failed", 500, tries=9)
        self.deliveries.add_try(made, 8, None, failure="timeout", answer=b"")
        self.deliveries.add_try(made, 9, 500, answer=b"<h1>Internal Server Error</h1> " * 40)
        self.deliveries.make("pending", 500, tries=3)
        told = [DeliveryExhausted(one, self.application, datetime.now(UTC)) for one in (made, uuid4())]
        self.dead_letter_topic.put(WEBHOOKS_DEAD, [(str(one.id).encode(), encode(one)) for one in told])
        return made

    def _add_dead_letters(self) -> None:
        reason = f"failed 3 times: KeyError('{'x' * 200}')"
        hostile = b'{"note": "<script>alert(1)</script>", "long": "%s"}' % (b"v" * 500)
        self.dead_letter_topic.add(
            self.dead_letter_topic.letter(hostile, reason=reason, key=b"k" * 200),
            self.dead_letter_topic.letter(b"\xff"),
        )

    def _poll(self) -> None:
        """Poll twice, for sparklines: a service is down, some records are late, others are not due."""
        records = Records(self.world.settings.kafka)
        records.put(WEBHOOKS_DELIVER, 3, ago=timedelta(minutes=5))
        records.put(WEBHOOKS_DELAY[2], 2, due_in=timedelta(minutes=4))
        targets = MonitorSettings(targets=MappingProxyType({"webhooks": "http://127.0.0.1:9"}))
        self.world.inspector._settings = replace(self.world.settings, monitor=targets)
        for _ in range(2):
            self.world.inspector.poll_once()

    def _replay_many(self) -> UUID:
        """Start a bulk replay. The scheduler does not run, so it stays in progress."""
        with self.world.database.transaction() as connection:
            return start_replay_run(connection, self.world.settings.kafka, uuid4(), None, _SOMEBODY).id

    def _resend_many(self) -> UUID:
        """Start a bulk resend. No scheduler runs, so it stays in progress."""
        now = datetime.now(UTC)
        with self.world.database.transaction() as connection:
            resend_all_exhausted(connection, now - timedelta(days=3), now, _SOMEBODY, uuid4())
        found: UUID = self.world.rows("select id from bulk_resends")[0][0]
        return found

    def _ask_and_propose(self) -> tuple[UUID, UUID, UUID]:
        """Return an attempt whose provider is being asked, one with its answer, and one with a proposed decision."""
        deciding = Deciding(self.world.database, self.application)
        asked, answered = deciding.attempt(), deciding.attempt()
        proposed = deciding.attempt(LIMIT + 1, "plutu")
        deciding.ask(asked, _SOMEBODY)
        deciding.ask_and_answer(answered)
        deciding.propose(proposed, _SOMEBODY, reference="r" * 255, reason="w" * 500)
        return asked, answered, proposed

    def _pause(self) -> None:
        self.world.run("update applications set webhooks_paused_at = now() where id = %s", self.application)
