"""The plan of the faults of `make chaos`."""

from itertools import combinations

import pytest

from chaos.fault_plan import (
    NETWORK_FAULTS,
    RANDOM_KINDS,
    FaultKind,
    Planned,
    Targets,
    plan_change_of_release,
    plan_faults,
)

TARGETS = Targets(
    services=("api-1", "api-2", "checkout-1", "webhooks-1", "webhooks-2", "scheduler-1", "sandbox"),
    with_workers=("api-1", "api-2", "checkout-1"),
    consumers=("webhooks-1", "webhooks-2"),
    brokers=("kafka-1", "kafka-2", "kafka-3"),
    postgres="postgres",
    links=("api-1>postgres", "webhooks-2>kafka-3", "checkout-1>sandbox"),
    engine_links=("kafka-1", "kafka-2", "kafka-3"),
    topics=("webhooks.deliver", "payment_intents.events"),
    groups=("webhooks.intake",),
)
SEEDS = range(40)


def away(plan: list[Planned], *targets: str) -> list[tuple[float, float]]:
    """When faults take one of these away, without the time of recovery."""
    return [(fault.begins_at, fault.ends_at) for fault in plan if fault.target in targets]


def overlaps(spans: list[tuple[float, float]]) -> bool:
    return any(a[0] < b[1] and b[0] < a[1] for a, b in combinations(spans, 2))


def test_the_same_seed_gives_the_same_plan() -> None:
    assert plan_faults(7, 180, TARGETS) == plan_faults(7, 180, TARGETS)
    assert plan_faults(7, 180, TARGETS) != plan_faults(8, 180, TARGETS)


def test_a_run_of_three_minutes_has_every_kind() -> None:
    for seed in SEEDS:
        kinds = {fault.kind for fault in plan_faults(seed, 180, TARGETS)}
        assert kinds == RANDOM_KINDS, f"seed {seed} lacks {RANDOM_KINDS - kinds}"


@pytest.mark.parametrize("seconds", [30, 120, 600])
def test_there_is_about_one_fault_every_five_to_eight_seconds(seconds: int) -> None:
    for seed in SEEDS:
        count = len(plan_faults(seed, seconds, TARGETS))
        assert seconds / 10 - 1 <= count <= seconds / 4.5, f"seed {seed}: {count}"


def test_all_faults_end_before_the_load_stops() -> None:
    for seed in SEEDS:
        for fault in plan_faults(seed, 60, TARGETS):
            assert 0 < fault.begins_at < fault.ends_at + 0.1 <= 60 - 2.5


def test_faults_overlap_but_never_take_two_brokers_or_an_engine_twice() -> None:
    some_overlap = False
    for seed in SEEDS:
        plan = plan_faults(seed, 600, TARGETS)
        some_overlap |= overlaps([(fault.begins_at, fault.ends_at) for fault in plan if fault.seconds])
        assert not overlaps(away(plan, *TARGETS.brokers, *TARGETS.engine_links))
        assert not overlaps(away(plan, "postgres"))
    assert some_overlap


def test_processes_are_stopped_for_one_to_forty_seconds() -> None:
    stops = [
        fault for seed in SEEDS for fault in plan_faults(seed, 600, TARGETS) if fault.kind is FaultKind.STOP
    ]
    assert all(1 <= fault.seconds <= 40 for fault in stops)
    assert max(fault.seconds for fault in stops) > 30
    assert {fault.target for fault in stops} == {*TARGETS.services, *TARGETS.engines}


def test_each_kind_has_targets_of_its_own_and_says_what_it_does() -> None:
    faults = [fault for seed in SEEDS for fault in plan_faults(seed, 600, TARGETS)]
    targets = {kind: {fault.target for fault in faults if fault.kind is kind} for kind in FaultKind}
    assert targets[FaultKind.KILL] == {*TARGETS.services, *TARGETS.engines}
    assert targets[FaultKind.KILL_CHILD] == {*TARGETS.with_workers, "postgres"}
    assert targets[FaultKind.DELETE_TOPIC] == set(TARGETS.topics)
    assert targets[FaultKind.RESET_GROUP] == set(TARGETS.groups)
    for kind in NETWORK_FAULTS:
        assert targets[kind] == {*TARGETS.links, *TARGETS.engine_links}
    described = {fault.describe() for fault in faults if fault.kind is FaultKind.MOVE_CLOCK}
    assert "450 s forward" in described


def test_both_releases_run_side_by_side_for_a_third_of_the_time() -> None:
    changes = plan_change_of_release(90, ("first copies", "second copies"), 18)
    assert [(change.number, change.begins_at, change.target) for change in changes] == [
        (18, 30.0, "first copies"),
        (19, 60.0, "second copies"),
    ]
