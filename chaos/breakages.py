"""`python -m chaos.breakages`, behind `make chaos-breakages`: mistakes that `make chaos` must find, each in a copy.

Each is one that an engineer could make. None is repaired by constraints, by requeueing or by the verifier before the
judge looks.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from chaos.broken_copy import (
    Breakage,
    EditError,
    Outcome,
    chaos_command,
    format_table,
    make_copy,
    run_copy,
)
from stack.programs import PROJECT

BREAKAGES: tuple[Breakage, ...] = (
    Breakage(
        name="attempt forgotten",
        file="services/checkout/payments/payment_service.py",
        old="""\
                limits.count_failure(connection, client)
        ATTEMPTS_STARTED.labels(method, provider.name).inc()
        response = provider.start(_payment(checkout, request, method, lang), details)
""",
        new="""\
                limits.count_failure(connection, client)
            ATTEMPTS_STARTED.labels(method, provider.name).inc()
            response = provider.start(_payment(checkout, request, method, lang), details)
            if response.outcome.answer is ProviderAnswer.UNKNOWN:
                raise DatabaseUnavailableError("the provider does not answer")
""",
        harm="The bank is asked before the attempt is committed. If it does not answer, the attempt is rolled back.",
        rules=("paid-charge-is-succeeded-intent", "paid-once"),
    ),
    Breakage(
        name="timeout taken for a decline",
        file="services/checkout/providers/sandbox.py",
        old="            response = build_response(ProviderAnswer.UNKNOWN)\n",
        new="            response = build_response(ProviderAnswer.DECLINED, FailureReason.PROVIDER_AWAY)\n",
        harm="A card that was charged without an answer in time counts as declined, and nobody asks the bank.",
        rules=("paid-charge-is-succeeded-intent", "paid-once"),
    ),
    Breakage(
        name="late payment ignored",
        file="shared/domain/attempts/settlement_rules.py",
        old="    if after is state and after not in IN_FLIGHT:\n",
        new="    if (after is state and after not in IN_FLIGHT) or state is AttemptState.DECLINED:\n",
        harm="A declined attempt stays declined when the bank reports that it was paid after all.",
        rules=("paid-charge-is-succeeded-intent", "paid-once"),
    ),
    Breakage(
        name="canceled early",
        file="shared/domain/intents/store.py",
        old='_IS_OVER = "select expires_at <= mizan_now() from',
        new="_IS_OVER = \"select expires_at <= mizan_now() + interval '10 minutes' from",
        harm="An intent whose attempt fails in the last ten minutes before its expiry is canceled at once.",
        rules=("never-canceled-early",),
    ),
    Breakage(
        name="answered before the commit",
        file="services/api/payment_intents.py",
        old="            intent, created = self._creates.run(new)\n",
        new="""\
            from threading import Timer

            transaction = self._database.transaction()
            intent, created = store.create_or_find(transaction.__enter__().cursor(), new)
            Timer(0.5, transaction.__exit__, (None, None, None)).start()
""",
        harm="The API answers 201 and commits half a second later.",
        rules=("acknowledged-intent-exists",),
        duration=120,
    ),
    Breakage(
        name="stale retrieval",
        file="shared/domain/intents/store.py",
        old="""\
def find_intent(cursor: Cursor[Any], uuid: UUID) -> Intent | None:
    row = _FIND.fetch_one(cursor, [str(uuid).encode()])
""",
        new="""\
_FOUND: dict[UUID, Any] = {}


def find_intent(cursor: Cursor[Any], uuid: UUID) -> Intent | None:
    row = _FOUND[uuid] = _FOUND.get(uuid) or _FIND.fetch_one(cursor, [str(uuid).encode()])
""",
        harm="Each process of the API keeps an intent as it was when it was first retrieved.",
        rules=(
            "retrieval-after-receipt-is-not-older",
            "status-moves-as-allowed",
            "update-time-never-goes-back",
        ),
    ),
    Breakage(
        name="outbox rows dropped",
        file="services/scheduler/jobs/relay.py",
        old="        session.connection.execute(_DELETE, ([row.id for row in confirmed],))\n",
        new='        session.connection.execute("delete from outbox")\n',
        harm="The relay also deletes the rows that were added while it waited for Kafka, and never publishes them.",
        rules=("resend-is-one-try",),
        duration=120,
    ),
    Breakage(
        name="offsets committed early",
        file="shared/platform/kafka/watermark.py",
        old="""\
        if self.position is None:
            self.position = offset
        self._order.append((offset, timestamp))
        self._unfinished.add(offset)

    def finish(self, offset: int) -> None:
        \"""Mark an offset as finished. A second call, or an offset that was never started, changes nothing.\"""
        self._unfinished.discard(offset)
        while self._order and self._order[0][0] not in self._unfinished:
            self.position = self._order.popleft()[0] + 1
""",
        new="""\
        self.position = offset + 1
        self._order.append((offset, timestamp))
        self._unfinished.add(offset)

    def finish(self, offset: int) -> None:
        self._unfinished.discard(offset)
        while self._order and self._order[0][0] not in self._unfinished:
            self._order.popleft()
""",
        harm="A record counts as finished when it is read. Deliveries are requeued from PostgreSQL, resends are not.",
        rules=("resend-is-one-try",),
        duration=240,
        seed=2085,  # kills webhook services four times
    ),
    Breakage(
        name="look-up before sending skipped",
        file="services/webhooks/pipeline/next_action.py",
        old="    if delivery.status is not DeliveryStatus.PENDING:\n",
        new="    if delivery.status is DeliveryStatus.FAILED:\n",
        harm="A record that is read again is sent again, although its delivery has succeeded.",
        rules=("no-request-after-recorded-success",),
        duration=240,
        seed=269,  # resets webhooks.intake to the beginning after 169 s, and does not delete its topic before
    ),
    Breakage(
        name="events of paused applications dropped",
        file="services/webhooks/pipeline/intake.py",
        old="where id = taken.application_id and webhook_url is not null offset 0",
        new="where id = taken.application_id and webhook_url is not null and webhooks_paused_at is null offset 0",
        harm="A change that happens while the webhooks of its application are paused is taken in without a delivery.",
        rules=("change-has-a-delivery", "change-is-received"),
    ),
    Breakage(
        name="retry with the current settings",
        file="services/webhooks/pipeline/next_action.py",
        old="    return SetAside() if delivery.is_paused else Send(delivery.original)\n",
        new="    return SetAside() if delivery.is_paused else Send(delivery.current)\n",
        harm="After a secret roll or a new URL, retries use the new one instead of that of their first try.",
        rules=("retries-keep-secret-and-url", "secret-is-of-its-time", "url-is-of-its-time"),
        duration=120,
    ),
    Breakage(
        name="old secret after a roll",
        file="services/webhooks/pipeline/lookup.py",
        old="        key = self._keys.get((application_id, version))\n",
        new="        key = next((key for (owner, _), key in self._keys.items() if owner == application_id), None)\n",
        harm="The first key of an application that a process has used signs everything that follows.",
        rules=("secret-is-of-its-time",),
        duration=120,
    ),
    Breakage(
        name="early retry",
        file="services/webhooks/retry_schedule.py",
        old="retry_delays[step - 1])\n",
        new="retry_delays[step - 2])\n",
        harm="Each retry waits for the delay of the one before it.",
        rules=("retry-is-never-early",),
    ),
    Breakage(
        name="new id for each try",
        file="services/webhooks/pipeline/lookup.py",
        old="        body = build_body(delivery.id, delivery.event, delivery.intent_uuid)\n",
        new="""\
        try_id = f"{delivery.id[:-1]}{delivery.step}"
        body = build_body(try_id, delivery.event, delivery.intent_uuid)
""",
        harm="The body has the id of the try instead of that of the delivery, so receivers cannot see repeats.",
        rules=("one-id-per-change", "delivery-is-listed"),
    ),
)

_EXIT_USAGE = 2


def main(arguments: list[str]) -> int:
    given = _parser().parse_args(arguments)
    known = {breakage.directory_name: breakage for breakage in BREAKAGES}
    if unknown := [name for name in given.names if name not in known]:
        print(f"Unknown: {', '.join(unknown)}. There are: {', '.join(known)}.", file=sys.stderr)
        return _EXIT_USAGE
    directory = Path(given.directory or tempfile.mkdtemp(prefix="mizan-breakages-")).resolve()
    outcomes = []
    for breakage in [known[name] for name in given.names] or BREAKAGES:
        print(f"{breakage.name}: {directory / breakage.directory_name}", flush=True)
        try:
            outcome = _try_breakage(breakage, directory, given.seed, given.port_base)
        except (EditError, FileExistsError) as error:
            print(error, file=sys.stderr)
            return _EXIT_USAGE
        result = "caught" if outcome.is_caught else "NOT CAUGHT"
        print(f"{breakage.name}: {result} after {outcome.seconds:.0f} s", flush=True)
        outcomes.append(outcome)
    print(format_table(outcomes))
    return 0 if all(outcome.is_caught for outcome in outcomes) else 1


def _try_breakage(breakage: Breakage, directory: Path, seed: int | None, port_base: int) -> Outcome:
    """Run `make chaos` on a copy. History and logs are kept if it was not caught. Raises EditError, FileExistsError."""
    work = directory / breakage.directory_name
    work.mkdir(parents=True)
    make_copy(PROJECT, work / "project", breakage)
    command = chaos_command(breakage, seed, work / "run", port_base)
    outcome = run_copy(breakage, work / "project", command, work / "output.txt")
    if outcome.is_caught:
        shutil.rmtree(work, ignore_errors=True)
    return outcome


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chaos.breakages", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which, such as early-retry (default: all)")
    parser.add_argument(
        "--seed", type=int, help="of load and faults of each run (default: that of the breakage)"
    )
    parser.add_argument("--port-base", type=int, default=20_000, help="its ports are the 200 from here on")
    parser.add_argument("--directory", help="for the copies and runs (default: a temporary one)")
    return parser


if __name__ == "__main__":
    # So that the run is stopped, with its stack, before this process ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
