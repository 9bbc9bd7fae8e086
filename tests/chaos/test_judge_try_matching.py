"""Which request at a receiver was which try, and when a change can have happened at the earliest."""

from math import inf

import pytest

from chaos.history import FaultBegan, FaultEnded, Record, ResendRequested, SecretRolled
from chaos.judge.changes import earliest_change, sure_changes
from chaos.judge.run import index_run
from chaos.judge.try_matching import HELD_BACK_SECONDS, REQUEST_SECONDS, match_tries
from tests.chaos.run_builder import CANCELED, JUMP, START, SUCCEEDED, RunBuilder, delivery_id
from tests.chaos.sample_run import build_sample

_ID = delivery_id("x", SUCCEEDED)


def _match(
    requests: list[tuple[float, str]], tries: list[tuple[float, str]], *, fault_at: float | None = None
) -> tuple[dict[int, float], list[float], list[int]]:
    """Return the time of the request of each try, the repeats, and the tries that nobody received."""
    run = RunBuilder()
    run.register("a", "https://a.test/hook", "whsec_a")
    for at, answer in requests:
        run.receive("a", "x", SUCCEEDED, at, secret="whsec_a", url="https://a.test/hook", answer=answer)
    run.list_delivery("a", "x", SUCCEEDED, "pending", [(at, result, True) for at, result in tries])
    records: list[Record] = run.records
    if fault_at is not None:
        records.append(FaultBegan(at=START + fault_at, number=1, fault="hang", target="a", details=""))
        records.append(FaultEnded(at=START + fault_at + 1, number=1, problem=None))
    matched = match_tries(index_run(records), _ID)
    return (
        {number: receipt.at - START for number, receipt in matched.receipt_of.items()},
        [receipt.at - START for receipt in matched.repeats],
        [one.number for one in matched.unreceived],
    )


@pytest.mark.parametrize(
    ("requests", "tries", "expected"),
    [
        # Each try has its request.
        ([(10, "500"), (12, "200")], [(10, "500"), (12, "200")], ({1: 10, 2: 12}, [], [])),
        # A try that failed before it was received.
        ([(12, "200")], [(10, "refused"), (12, "200")], ({2: 12}, [], [])),
        ([(10.5, "200")], [(10, "refused")], ({}, [10.5], [])),
        # The answer decides, although the first request is nearer to the second try.
        ([(10.2, "500"), (10.9, "200")], [(10, "200"), (10.1, "500")], ({1: 10.9, 2: 10.2}, [], [])),
        # The nearest request is the try, the other one a repeat.
        ([(10, "200"), (15, "200")], [(10, "200")], ({1: 10}, [15], [])),
        ([(10, "200"), (15, "200")], [(15, "200")], ({1: 15}, [10], [])),
        # A try whose nearest request belongs to another try takes the next one.
        ([(10, "hang"), (11, "hang")], [(10, "timeout"), (10.2, "timeout")], ({1: 10, 2: 11}, [], [])),
        # A slow answer may have come in time or not; a connection that was closed has no answer.
        ([(10, "slow")], [(10, "200")], ({1: 10}, [], [])),
        ([(10, "slow")], [(10, "timeout")], ({1: 10}, [], [])),
        ([(10, "close")], [(10, "200")], ({}, [10], [1])),
        ([(10, "hang")], [(10, "200")], ({}, [10], [1])),
        # A request comes after its try began, and not much later.
        ([(9.6, "200")], [(10, "200")], ({1: 9.6}, [], [])),
        ([(9.4, "200")], [(10, "200")], ({}, [9.4], [1])),
        ([(10 + REQUEST_SECONDS - 0.1, "200")], [(10, "200")], ({1: 10 + REQUEST_SECONDS - 0.1}, [], [])),
        ([(10 + REQUEST_SECONDS + 0.1, "200")], [(10, "200")], ({}, [10 + REQUEST_SECONDS + 0.1], [1])),
        # Nothing to match.
        ([], [], ({}, [], [])),
    ],
)
def test_requests_are_matched_with_tries(
    requests: list[tuple[float, str]],
    tries: list[tuple[float, str]],
    expected: tuple[dict[int, float], list[float], list[int]],
) -> None:
    matched, repeats, unreceived = _match(requests, tries)
    assert matched == pytest.approx(expected[0])
    assert repeats == pytest.approx(expected[1])
    assert unreceived == expected[2]


@pytest.mark.parametrize("late", [50, HELD_BACK_SECONDS - 1])
def test_request_is_held_back_only_around_a_fault(late: float) -> None:
    assert _match([(100 + late, "500")], [(100, "timeout")])[1] == [pytest.approx(100 + late)]
    assert _match([(100 + late, "500")], [(100, "timeout")], fault_at=105)[1] == []
    # Recorded late, as if it had begun late.
    assert _match([(100, "500")], [(100 + late, "500")], fault_at=105)[1] == []


def test_request_is_not_held_back_for_ever() -> None:
    assert len(_match([(110 + HELD_BACK_SECONDS, "500")], [(100, "timeout")], fault_at=105)[1]) == 1
    assert len(_match([(100, "500")], [(110 + HELD_BACK_SECONDS, "500")], fault_at=105)[1]) == 1


@pytest.mark.parametrize(
    ("uuid", "event", "after"),
    [
        # Its first form was sent at 12.
        ("card", SUCCEEDED, 12),
        # It was still processing when it was retrieved at 92.
        ("unanswered", SUCCEEDED, 92),
        # It was canceled when it was retrieved at 305, although its form was sent at 99.
        ("late", SUCCEEDED, 305),
        # The clock jumped over its expiry; the jump may have come when it began.
        ("late", CANCELED, 299.8),
        # Its time has not come; it is still open at 432.
        ("open", CANCELED, 310 + 86_400),
        ("open", SUCCEEDED, 432),
    ],
)
def test_earliest_time_of_a_change(uuid: str, event: str, after: float) -> None:
    assert earliest_change(index_run(build_sample()), uuid, event) == pytest.approx(START + after, abs=0.001)


def test_nothing_is_known_of_an_intent_that_nobody_saw() -> None:
    assert earliest_change(index_run(build_sample()), "unknown", CANCELED) == -inf


def test_expiry_that_is_reached_long_after_the_intent_was_seen() -> None:
    run = RunBuilder()
    run.create("a", "x", 10)
    assert earliest_change(index_run(run.records), "x", CANCELED) == START + 10 + 86_400
    assert JUMP > 86_400  # so that in the sample the jump decides


def test_sure_changes_are_those_that_a_client_saw() -> None:
    intents = index_run(build_sample()).intents
    assert list(sure_changes(intents["late"])) == [CANCELED, SUCCEEDED]
    assert list(sure_changes(intents["card"])) == [SUCCEEDED]
    assert list(sure_changes(intents["open"])) == []


@pytest.mark.parametrize(
    ("requests", "tries", "expected"),
    [
        # A resend ends before a scheduled try that hangs, and so has the lower number.
        (
            [(10, "hang", "whsec_a"), (16.5, "close", "whsec_new")],
            [(16.4, "broken_answer", False), (10, "timeout", True)],
            {1: 16.5, 2: 10},
        ),
        # Both at about the same time: the resend has the new secret.
        (
            [(17, "close", "whsec_a"), (18, "close", "whsec_new")],
            [(18, "broken_answer", True), (18, "broken_answer", False)],
            {1: 17, 2: 18},
        ),
        (
            [(17, "500", "whsec_new"), (17.1, "500", "whsec_a")],
            [(17, "500", True), (17.1, "500", False)],
            {1: 17.1, 2: 17},
        ),
        # No request has the new secret: the resend is one of those with the old one.
        (
            [(17, "500", "whsec_a"), (18, "500", "whsec_a")],
            [(17, "500", True), (18, "500", False)],
            {1: 17, 2: 18},
        ),
    ],
)
def test_resend_is_told_from_a_scheduled_try_by_its_secret(
    requests: list[tuple[float, str, str]],
    tries: list[tuple[float, str, bool]],
    expected: dict[int, float],
) -> None:
    """If both requests fit both tries, here because of a fault."""
    run = RunBuilder()
    run.register("a", "https://a.test/hook", "whsec_a")
    for at, answer, secret in requests:
        run.receive("a", "x", SUCCEEDED, at, secret=secret, url="https://a.test/hook", answer=answer)
    run.list_delivery("a", "x", SUCCEEDED, "pending", tries)
    run.add(SecretRolled(at=START + 15.2, application="a", began_at=START + 15, secret="whsec_new"))
    run.add(
        ResendRequested(
            at=START + 16.2, application="a", began_at=START + 16, delivery=_ID, acknowledged=True
        )
    )
    run.add(FaultBegan(at=START + 12, number=1, fault="hang", target="a", details=""))
    run.add(FaultEnded(at=START + 13, number=1, problem=None))
    matched = match_tries(index_run(run.records), _ID)
    found = {number: receipt.at - START for number, receipt in matched.receipt_of.items()}
    assert found == pytest.approx(expected)
