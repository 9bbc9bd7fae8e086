"""The API as several processes: killed, stopped, and with PostgreSQL unavailable."""

import os
import signal
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

import psutil
import pytest
import requests

from shared.domain.applications.credentials import (
    CredentialKind,
    find_credential,
    issue_credential,
    revoke_credential,
)
from shared.domain.intents.intent import NewIntent
from shared.domain.intents.store import create_or_find
from shared.platform.database.pool import Database
from shared.platform.settings import DatabaseSettings
from shared.platform.tokens import token_prefix
from stack.engines import Engines
from tests.api.conftest import MakeApplication, credentials_of
from tests.api.running_api import RunningApi, running_api
from tests.postgres_statistics import count_lock_waits
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.filterwarnings("ignore::ResourceWarning")]

Headers = Mapping[str, str]


@pytest.fixture
def headers(make_application: MakeApplication) -> Headers:
    return credentials_of(make_application("Tripoli Coffee"))


@pytest.fixture
def api(database_settings: DatabaseSettings) -> Iterator[RunningApi]:
    with running_api(database_settings) as api:
        yield api


def _rows(database: Database, query: str) -> Any:
    with database.transaction() as connection:
        return connection.execute(query.encode()).fetchall()


def test_fifty_identical_creates_over_several_processes_make_one_intent(
    api: RunningApi, database_settings: DatabaseSettings, database: Database, headers: Headers
) -> None:
    """§4.1 rule 3: one 201, forty-nine 200, one row, one event; two APIs with two workers each."""
    with running_api(database_settings) as second, ThreadPoolExecutor(50) as callers:
        answers = list(callers.map(lambda n: (api, second)[n % 2].create(headers), range(50)))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 49}
    assert len({answer.json()["data"]["uuid"] for answer in answers}) == 1
    for table in ("payment_intents", "intent_events", "outbox"):
        assert _rows(database, f"select count(*) from {table}") == [(1,)]


def test_a_revoked_credential_stops_working_within_5_seconds_in_every_process(
    api: RunningApi, database: Database, headers: Headers, make_application: MakeApplication
) -> None:
    """§5: the other credentials of the application keep working."""
    application = make_application("Benghazi Books")
    with database.transaction() as connection:
        spare = issue_credential(connection, application.id, CredentialKind.ACCESS_TOKEN)
    old = credentials_of(application)
    new = {**old, "Authorization": f"Bearer {spare.text}"}
    assert {_fresh_call(api, old, n) for n in range(20)} == {201, 200}
    with database.transaction() as connection:
        first = find_credential(connection, application.id, token_prefix(application.access_token))
        revoke_credential(connection, application.id, first.id)
    revoked_at = monotonic()
    eventually(lambda: {_fresh_call(api, old, n) for n in range(20)} == {401}, within=5)
    assert monotonic() - revoked_at < 5
    assert _fresh_call(api, new, 1) == 200
    assert _fresh_call(api, headers, 1) == 201


def _fresh_call(api: RunningApi, headers: Headers, number: int) -> int:
    """Call over a new connection, so that any worker may accept it."""
    return api.create(headers, merchant_reference=f"order-{number % 2}").status_code


@pytest.mark.kills
def test_killed_postgresql_causes_fast_503_responses_until_it_is_back(
    killable_engines: Engines, api: RunningApi, headers: Headers
) -> None:
    """With Retry-After, also for cached credentials. No restart of the API is needed."""
    assert api.create(headers).status_code == 201
    killable_engines.postgres.kill()
    try:
        began = monotonic()
        with ThreadPoolExecutor(16) as callers:
            answers = list(callers.map(lambda n: api.create(headers, merchant_reference=f"x-{n}"), range(64)))
        assert monotonic() - began < 5  # 64 calls: with a wait for each it would take far longer
        assert {answer.status_code for answer in answers} == {503}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
        assert {answer.json()["message"] for answer in answers} == {
            "The service is temporarily unavailable. Please try again."
        }
        unknown = api.create({"X-API-Key": "pk_unknown"})
        assert unknown.status_code == 503  # it is not known whether the key is valid
        ready = requests.get(f"http://127.0.0.1:{api.port}/readyz", timeout=5)
        assert ready.status_code == 503
        assert requests.get(f"http://127.0.0.1:{api.port}/healthz", timeout=5).status_code == 200
    finally:
        killable_engines.postgres.start()
    eventually(lambda: api.create(headers, merchant_reference="after").status_code in (200, 201))
    assert api.process.poll() is None


@pytest.mark.kills
def test_frozen_postgresql_causes_503_responses_within_seconds(
    killable_engines: Engines, api: RunningApi, headers: Headers
) -> None:
    """It keeps its connections open but does not respond."""
    assert api.create(headers).status_code == 201
    killable_engines.postgres.suspend()
    try:
        began = monotonic()
        with ThreadPoolExecutor(16) as callers:
            answers = list(callers.map(lambda n: api.create(headers, merchant_reference=f"y-{n}"), range(16)))
        assert {answer.status_code for answer in answers} == {503}
        assert monotonic() - began < 15
    finally:
        killable_engines.postgres.resume()
    eventually(lambda: api.create(headers, merchant_reference="after").status_code in (200, 201))


def test_callers_without_credentials_cannot_block_threads(api: RunningApi, headers: Headers) -> None:
    """Forty callers announce a body, by length or chunked, and send none. All get a response, and others too."""
    lines = [socket.create_connection(("127.0.0.1", api.port), timeout=10) for _ in range(40)]
    try:
        for number, line in enumerate(lines):
            path = ("/api/v1/payment-intents", "/nowhere")[number % 2]
            announced = ("Content-Length: 100", "Transfer-Encoding: chunked")[number // 2 % 2]
            line.sendall(f"POST {path} HTTP/1.1\r\nHost: api\r\n{announced}\r\n\r\n".encode())
        assert api.create(headers).status_code == 201
        assert {line.recv(12) for line in lines} == {b"HTTP/1.1 401", b"HTTP/1.1 404"}
    finally:
        for line in lines:
            line.close()


@pytest.mark.kills
def test_killed_worker_is_replaced(api: RunningApi, headers: Headers) -> None:
    """SIGKILL of one worker."""
    before = api.workers
    victim = before.copy().pop()
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(api.workers) == 2 and victim not in api.workers)
    eventually(lambda: _answers(api, headers))
    assert api.process.poll() is None


@pytest.mark.kills
def test_worker_that_is_still_starting_obeys_a_stop_signal(api: RunningApi) -> None:
    """It is not waited for in vain, which would take 30 seconds."""
    before = api.workers
    os.kill(before.copy().pop(), signal.SIGKILL)
    eventually(lambda: api.workers - before, every=0.001)
    api.process.send_signal(signal.SIGTERM)
    assert api.process.wait(20) == 0


@pytest.mark.kills
def test_workers_exit_if_their_parent_is_killed(api: RunningApi) -> None:
    """SIGKILL of the parent: no old worker responds beside the next start."""
    workers = [psutil.Process(pid) for pid in api.workers]
    api.process.kill()
    api.process.wait()
    eventually(lambda: not any(worker.is_running() for worker in workers))


def test_sigterm_finishes_open_requests_and_exits_with_status_0(
    api: RunningApi, database: Database, make_application: MakeApplication
) -> None:
    """Four calls wait for the database when the signal arrives."""
    application = make_application("Tripoli Coffee")
    family = psutil.Process(api.process.pid).children(recursive=True)
    with ThreadPoolExecutor(4) as callers:
        with database.transaction() as connection:
            new = NewIntent(application.id, "order-1", 25_000, "LYD")
            create_or_find(connection.cursor(), new)  # not committed, so the calls below wait for it
            calls = []
            for number in range(1, 5):  # one after the other: together, they would be one statement
                calls.append(callers.submit(api.create, credentials_of(application)))
                eventually(lambda: count_lock_waits(database) == number)  # noqa: B023  called at once
            api.process.send_signal(signal.SIGTERM)
            eventually(lambda: "Shutting down" in api.log.read_text())
        assert {call.result().status_code for call in calls} == {200}
    assert api.process.wait(40) == 0
    eventually(lambda: not any(process.is_running() for process in family))
    assert [line["status"] for line in api.lines() if line["logger"] == "web.access"] == [200] * 4


def test_port_in_use_is_refused_with_a_message(api: RunningApi, database_settings: DatabaseSettings) -> None:
    with (
        pytest.raises(AssertionError, match="cannot listen on"),
        running_api(database_settings, HTTP_PORT=str(api.port)),
    ):
        pass


def test_metrics_are_summed_over_all_workers(api: RunningApi, headers: Headers) -> None:
    """/metrics reports the same from every worker."""
    with ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda n: api.create(headers, merchant_reference=f"m-{n}"), range(40)))
    sample = (
        'mizan_http_requests_total{method="POST",route="/api/v1/payment-intents",service="api",status="2xx"}'
    )
    told = {_counted(api, sample) for _ in range(10)}
    assert told == {40.0}


def test_no_credential_appears_in_the_log_of_the_process(api: RunningApi, headers: Headers) -> None:
    """Neither for successful nor for failed calls, whole or without its prefix."""
    api.create(headers)
    api.create({**headers, "X-API-Key": "pk_" + "A" * 32})
    requests.get(f"{api.url}/{headers['X-API-Key']}", headers=headers, timeout=5)
    requests.get(f"{api.url}?key={headers['X-API-Key']}", headers=headers, timeout=5)
    eventually(lambda: len([line for line in api.lines() if line.get("logger") == "web.access"]) >= 4)
    logged = api.log.read_text()
    for secret in (headers["X-API-Key"], headers["Authorization"].split()[1], "A" * 32):
        assert secret not in logged
        assert secret[3:] not in logged
    assert all("request_id" in line for line in api.lines() if line.get("logger") == "web.access")


def _answers(api: RunningApi, headers: Headers) -> bool:
    return all(api.create(headers).status_code in (200, 201) for _ in range(6))


def _counted(api: RunningApi, sample: str) -> float | None:
    text = requests.get(f"http://127.0.0.1:{api.port}/metrics", timeout=5).text
    values = [line.rsplit(" ", 1)[1] for line in text.splitlines() if line.startswith(sample)]
    return float(values[0]) if values else None
