"""Every delivery has a facet that the filters know: Python and the SQL function delivery_facet use the same numbers."""

import re
from itertools import product

from services.dashboard.deliveries.labels import EVENT_OPTIONS, RESPONSE_OPTIONS, STATUS_OPTIONS
from services.webhooks.retry_schedule import DeliveryStatus
from shared.domain.deliveries.try_results import (
    EVENTS,
    NO_URL,
    STATUSES,
    ResponseClass,
    TryFailure,
    matching_facets,
)
from shared.domain.intents.states import EventType
from shared.platform.database.pool import fetch_scalar
from tests.dashboard.delivery_rows import Deliveries
from tests.dashboard.test_deliveries_list import listed
from tests.dashboard.world import DashboardWorld
from tests.page_client import PageClient

RESPONSES: dict[tuple[int | None, str | None], ResponseClass] = {
    (None, None): ResponseClass.NOT_TRIED,
    **{(None, failure): ResponseClass.NOTHING for failure in (*TryFailure, NO_URL)},
    (100, None): ResponseClass.OTHER,
    (199, None): ResponseClass.OTHER,
    (200, None): ResponseClass.SUCCESS,
    (299, None): ResponseClass.SUCCESS,
    (300, None): ResponseClass.REDIRECT,
    (399, None): ResponseClass.REDIRECT,
    (400, None): ResponseClass.CLIENT_ERROR,
    (499, None): ResponseClass.CLIENT_ERROR,
    (500, None): ResponseClass.SERVER_ERROR,
    (599, None): ResponseClass.SERVER_ERROR,
    (600, None): ResponseClass.OTHER,
    (999, None): ResponseClass.OTHER,
}
_TEXT = re.compile(r"'([^']+)'(?:::text)?")


def test_python_and_sql_have_the_same_number_for_every_delivery(world: DashboardWorld) -> None:
    for status, event, ((code, failure), response) in product(DeliveryStatus, EVENTS, RESPONSES.items()):
        with world.database.cursor() as cursor:
            values = (str(status), str(event), code, failure)
            found = fetch_scalar(cursor, "select delivery_facet(%s, %s, %s, %s)", values)
        assert [found] == matching_facets(status, event, response), values
    assert set(RESPONSES.values()) == set(ResponseClass)
    everything = matching_facets()
    assert len(set(everything)) == len(everything) == len(STATUSES) * len(EVENTS) * len(ResponseClass)


def test_python_and_sql_know_the_same_statuses_and_events(world: DashboardWorld) -> None:
    """Whoever adds one has to add it to both, and the table accepts no status without a number."""
    with world.database.cursor() as cursor:
        function = fetch_scalar(cursor, "select pg_get_functiondef('delivery_facet'::regproc)")
        constraint = fetch_scalar(
            cursor,
            """select pg_get_constraintdef(oid) from pg_constraint
               where conrelid = 'webhook_deliveries'::regclass and conname = 'webhook_deliveries_status_check'""",
        )
    assert set(_TEXT.findall(function)) == {*STATUSES, *map(str, EVENTS)}
    assert set(_TEXT.findall(constraint)) == set(STATUSES) == set(DeliveryStatus)
    assert set(EVENTS) <= set(EventType)


def test_every_status_and_event_is_listed_by_every_filter_that_includes_it(
    pages: DashboardWorld, deliveries: Deliveries, viewer: PageClient
) -> None:
    """Whatever the pipeline can write, each choice of each filter lists what it names, and all choices list all."""
    made = {
        deliveries.make(status, code, event=event, failure=failure): (str(status), str(event), str(response))
        for status, event, ((code, failure), response) in product(
            DeliveryStatus, EVENTS, _one_of_each_response().items()
        )
    }
    filters = {"status": STATUS_OPTIONS, "event": EVENT_OPTIONS, "answer": RESPONSE_OPTIONS}
    for position, (name, options) in enumerate(filters.items()):
        seen = set()
        for value, _label in options:
            expected = [delivery for delivery, known in made.items() if known[position] == value]
            assert listed(viewer, pages.application.id, f"?{name}={value}") == expected[::-1], (name, value)
            seen |= set(expected)
        left = {made[delivery][position] for delivery in made.keys() - seen}
        assert left == ({ResponseClass.OTHER.value} if name == "answer" else set()), name


def _one_of_each_response() -> dict[tuple[int | None, str | None], ResponseClass]:
    return {key: response for response, key in {response: key for key, response in RESPONSES.items()}.items()}
