"""PostgreSQL fails over to its streaming standby under load. Services follow it through a DATABASE_URL with both."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from uuid import uuid4

import psycopg
import pytest
from cryptography.fernet import Fernet

from shared.domain.applications.registry import NewApplication, create_application
from shared.platform.database.roles import OWNER
from shared.platform.encryption import SecretBox
from shared.platform.migrations.runner import migrate
from stack.database_roles import urls_with_passwords
from stack.ports import find_free_ports
from tests.api.running_api import RunningApi
from tests.database_roles import password_of
from tests.engines import TestEngines
from tests.stack.running_stack import whole_stack
from tests.stores.load import Load, WebhookInbox
from tests.stores.postgres_servers import PostgresServer, both_hosts, primary_and_standby
from tests.stores.settled_stack import audit, check_acknowledged, wait_settled
from tests.waiting import eventually
from tests.webhooks.receivers import Receiver

pytestmark = [pytest.mark.kills, pytest.mark.timeout(600)]

QUICK_RETRIES = ",".join(["1"] * 8)


@pytest.mark.stack
def test_whole_stack_follows_the_failover_and_keeps_what_it_acknowledged(
    engines: TestEngines, tmp_path: Path
) -> None:
    """The primary is killed and the standby promoted at once. No service is restarted, no setting changed."""
    prefix, inbox = f"t{uuid4().hex[:8]}.", WebhookInbox()
    with (
        primary_and_standby(*find_free_ports(2), synchronous=True) as (primary, standby),
        Receiver(inbox) as receiver,
        whole_stack(
            tmp_path / "stack",
            engines,
            both_hosts(primary, standby),
            prefix,
            WEBHOOK_RETRY_DELAYS=QUICK_RETRIES,
            PROVIDER_TIMEOUT="2",
        ) as stack,
    ):
        pids = stack.read()["pids"]
        application = stack.mizan("app", "create", "--name", "Shop", "--webhook-url", receiver.url, "--json")
        with Load(stack.read()["api_base_url"], application, customers=2) as load:
            eventually(lambda: load.has_created(60) and load.has_paid(20), within=60)
            killed_at = time()
            primary.kill()
            standby.promote()
            promoted_after = time() - killed_at
            eventually(lambda: load.has_created(60, since=killed_at), within=60)
            eventually(lambda: load.has_paid(20, since=killed_at), within=60)
        paid = wait_settled(stack, application["application_id"], inbox)
        check_acknowledged(load)
        assert {one.uuid for one in load.paid} <= paid <= load.clicked
        assert audit(stack, KAFKA_TOPIC_PREFIX=prefix) == (0, [])
        assert stack.read()["pids"] == pids
    print(
        f"promoted after {promoted_after:.2f} s, without service for {load.longest_gap(killed_at):.2f} s; "
        f"{len(load.created)} created, {len(load.paid)} paid, failures {dict(load.failures)}"
    )


def owner_url(url: str) -> str:
    return urls_with_passwords(url, {OWNER: password_of(OWNER)})[OWNER]


@contextmanager
def api_on(primary: PostgresServer, standby: PostgresServer) -> Iterator[tuple[RunningApi, dict[str, str]]]:
    """Start an API that knows both servers. Yield it with an application's credentials."""
    migrate(owner_url(primary.url))
    with psycopg.connect(owner_url(primary.url)) as connection:
        box = SecretBox((Fernet.generate_key().decode(),))
        made = create_application(connection, box, NewApplication("Shop"))
    url = urls_with_passwords(both_hosts(primary, standby), {"mizan_api": password_of("mizan_api")})
    with TemporaryDirectory(prefix="mizan-api-") as directory:
        api = RunningApi(
            url["mizan_api"],
            Path(directory),
            DATABASE_STATEMENT_TIMEOUT="2",
            DATABASE_CONNECT_TIMEOUT="1",
            API_RATE_LIMIT="0",
        )
        try:
            api.wait_ready()
            yield api, {"api_key": made.api_key, "access_token": made.access_token}
        finally:
            api.stop()


@pytest.mark.parametrize("synchronous", [True, False], ids=["synchronous", "asynchronous"])
def test_what_the_standby_does_not_have_is_acknowledged_only_without_synchronous_replication(
    synchronous: bool,
) -> None:
    """The standby receives nothing for a moment; then the primary dies. The second case shows what would be lost."""
    with (
        primary_and_standby(*find_free_ports(2), synchronous=synchronous) as (primary, standby),
        api_on(primary, standby) as (api, credentials),
    ):
        with Load(api.base_url, credentials) as load:
            eventually(lambda: load.has_created(30))
            standby.suspend()
            suspended_at = time()
            # Either requests end without an answer 201, or they are acknowledged by the primary alone.
            eventually(lambda: load.failures["503"] >= 2 or load.has_created(30, since=suspended_at))
            killed_at = time()
            primary.kill()
            standby.kill()  # also loses what it has not read from its sockets
            standby.start()
            standby.promote()
            eventually(lambda: load.has_created(30, since=killed_at), within=60)
        missing = missing_in(standby, load)
        if synchronous:
            assert missing == set()
            assert not [one for one in load.created if suspended_at < one.began_at and one.at < killed_at]
        else:
            assert len(missing) >= 30


def test_frozen_primary_acknowledges_nothing_after_its_standby_was_promoted() -> None:
    """Its sessions and those of a restarted process wait for a standby in vain, until the old primary is stopped."""
    with (
        primary_and_standby(*find_free_ports(2), synchronous=True) as (primary, standby),
        api_on(primary, standby) as (api, credentials),
    ):
        with Load(api.base_url, credentials) as load:
            eventually(lambda: load.has_created(30))
            frozen_at = time()
            primary.suspend()
            standby.promote()
            eventually(lambda: load.has_created(30, since=frozen_at), within=60)
            primary.resume()
            resumed_at = time()
            assert primary.is_writable()
            os.kill(min(api.workers), signal.SIGKILL)
            # The new worker connects to the first host, where it can read, but no commit ends.
            eventually(lambda: waits_for_replication(primary, since=resumed_at), within=60)
            # Nothing is promised but safety: the other worker, too, may open its next connections there.
            refused = load.failures["503"]
            eventually(lambda: load.failures["503"] > refused, within=60)
            assert missing_in(standby, load) == set()
            primary.kill()
            stopped_at = time()
            eventually(lambda: load.has_created(60, since=stopped_at), within=60)
        assert missing_in(standby, load) == set()
    print(f"frozen: without service for {load.longest_gap(frozen_at):.1f} s; failures {dict(load.failures)}")


def missing_in(server: PostgresServer, load: Load) -> set[str]:
    """Return the intents that were acknowledged by now and that this server does not have."""
    acknowledged = {one.uuid for one in load.created[:]}
    with psycopg.connect(server.url) as connection:
        known = {uuid for (uuid,) in connection.execute("select uuid::text from payment_intents")}
    return acknowledged - known


def waits_for_replication(server: PostgresServer, since: float) -> bool:
    """Tell whether a commit of a session that began later waits for a standby."""
    return bool(
        server.execute(
            "select count(*) from pg_stat_activity "
            f"where wait_event = 'SyncRep' and backend_start > to_timestamp({since})"
        )
    )
