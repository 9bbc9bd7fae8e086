"""Attempts that operators decide, at a provider that can be asked, and the operators who do it."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

from shared.domain.accounts.operators import add_operator
from shared.domain.attempts.decision_proposals import OutdatedProposal, approve_proposal, reject_proposal
from shared.domain.attempts.decision_rules import OperatorDecision
from shared.domain.attempts.operator_decision import ProposedDecision, decide_attempt
from shared.domain.attempts.provider_exchange import AttemptOutcome, SettlementResult
from shared.domain.attempts.settlement import lock_attempt, settle_notification, settle_response
from shared.domain.attempts.start import start_attempt
from shared.domain.attempts.states import AttemptState, ProviderAnswer
from shared.domain.attempts.status_inquiries import (
    OpenInquiries,
    ask_provider,
    find_open_inquiries,
    record_answer,
)
from shared.domain.audit_log import Actor
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find
from shared.platform.database.pool import Database
from shared.platform.errors import RefusedError

LIMIT = 1_000_000
CLI = Actor("cli operator mona (uid 1000)", address="host")


class Deciding:
    def __init__(self, database: Database, application_id: UUID) -> None:
        self.database = database
        self._application_id = application_id

    def operator(self, email: str = "") -> Actor:
        email = email or f"{uuid4().hex[:8]}@example.ly"
        with self.database.transaction() as connection:
            id_ = add_operator(connection, email, "correct horse battery staple")
        return Actor(f"operator {email}", address="127.0.0.1", operator_id=id_)

    def attempt(self, amount: int = 25_500, provider: str = "sandbox", outcome: str = "unknown") -> UUID:
        """Start an attempt whose request was answered so more than a minute ago."""
        new = NewIntent(self._application_id, uuid4().hex, amount, "LYD")
        with self.database.cursor() as cursor:
            intent = create_or_find(cursor, new)[0].uuid
        with self.database.transaction() as connection:
            request = start_attempt(connection, intent, "card", provider, AttemptState.SENT)
            settle_response(connection, request, AttemptOutcome(ProviderAnswer(outcome)))
        self.run(
            "update payment_attempts set sent_at = sent_at - interval '1 minute' where id = %s",
            request.attempt,
        )
        return request.attempt

    def ask(self, attempt: UUID, actor: Actor = CLI) -> UUID:
        with self.database.transaction() as connection:
            return ask_provider(connection, attempt, actor)

    def answer(self, attempt: UUID, answer: ProviderAnswer) -> None:
        """Record what the verifier would, for an answer that changes nothing."""
        with self.database.cursor() as cursor:
            asked = find_open_inquiries(cursor, attempt)
        self.answer_late(attempt, asked, answer)

    def answer_late(self, attempt: UUID, asked: OpenInquiries | None, answer: ProviderAnswer) -> None:
        """Record the answer to inquiries that were found earlier."""
        assert asked is not None
        with self.database.transaction() as connection:
            before = lock_attempt(connection, attempt).snapshot
            record_answer(connection, asked, AttemptOutcome(answer), before, before.state)

    def ask_and_answer(self, attempt: UUID, answer: ProviderAnswer = ProviderAnswer.UNKNOWN) -> None:
        self.ask(attempt)
        self.answer(attempt, answer)

    def decide(
        self,
        attempt: UUID,
        actor: Actor = CLI,
        *,
        is_paid: bool = True,
        reason: str = "seen in their list",
        reference: str = "T-9",
    ) -> SettlementResult | ProposedDecision:
        decision = OperatorDecision(is_paid, reason, reference if is_paid else "")
        with self.database.transaction() as connection:
            snapshot = lock_attempt(connection, attempt).snapshot
            return decide_attempt(
                connection, attempt, decision, actor, snapshot=snapshot, approval_above=LIMIT
            )

    def propose(self, attempt: UUID, actor: Actor = CLI, **decision: Any) -> UUID:
        proposed = self.decide(attempt, actor, **decision)
        assert isinstance(proposed, ProposedDecision)
        return proposed.id

    def approve(self, attempt: UUID, proposal: UUID, actor: Actor) -> SettlementResult | OutdatedProposal:
        with self.database.transaction() as connection:
            return approve_proposal(connection, attempt, proposal, actor)

    def reject(self, attempt: UUID, proposal: UUID, actor: Actor) -> None:
        with self.database.transaction() as connection:
            reject_proposal(connection, attempt, proposal, actor)

    def notify_paid(self, attempt: UUID) -> None:
        outcome = AttemptOutcome(ProviderAnswer.PAID, provider_reference="T-real")
        with self.database.transaction() as connection:
            settle_notification(connection, attempt, outcome)

    def approve_at_once(self, attempt: UUID, proposal: UUID, actors: list[Actor]) -> list[object]:
        """Return what each of them got: the result, or the error."""

        def act(actor: Actor) -> object:
            try:
                return self.approve(attempt, proposal, actor)
            except RefusedError as error:
                return error

        with ThreadPoolExecutor(len(actors)) as pool:
            return list(pool.map(act, actors))

    def state(self, attempt: UUID) -> str:
        return str(self.rows("select state from payment_attempts where id = %s", attempt)[0][0])

    def proposals(self) -> list[tuple[str | None, str | None]]:
        """Return how each proposal ended, and by whom; oldest first."""
        return self.rows("select ended_as, ended_by from decision_proposals order by id")

    def rows(self, statement: str, *values: object) -> list[Any]:
        with self.database.cursor() as cursor:
            return cursor.execute(statement.encode(), values).fetchall()

    def run(self, statement: str, *values: object) -> None:
        with self.database.cursor() as cursor:
            cursor.execute(statement.encode(), values)
