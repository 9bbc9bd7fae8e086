"""The load on a real API, checkout and sandbox, without a webhook service: its acts, its history, its end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import Connection

from chaos.history import (
    ApplicationRegistered,
    ChargeSettledLate,
    CreateAnswered,
    CustomerClicked,
    History,
    Record,
    RetrieveAnswered,
    SecretRolled,
    WebhooksPaused,
    WebhookUrlChanged,
    read_history,
)
from chaos.load import Load, LoadAddresses
from chaos.load import load as load_module
from services.api.app import make_app
from shared.domain.applications.webhook_secrets import decrypt_webhook_secret
from shared.platform.uuids import parse_uuid
from stack.ports import find_free_ports
from tests.checkout.world import CheckoutWorld
from tests.database_roles import open_as, url_as
from tests.servers import serve
from tests.waiting import eventually


@pytest.fixture
def load(pages: CheckoutWorld, tmp_path: Path) -> Iterator[Load]:
    assert pages.settings.sandbox is not None
    port = find_free_ports(1)[0]
    addresses = LoadAddresses(
        api_url=f"http://127.0.0.1:{port}/api/v1",
        checkout_url=pages.url,
        sandbox=pages.settings.sandbox,
        database_url=url_as("mizan_cli", pages.settings.database.url),
        environment={"MIZAN_SECRET_KEYS": ",".join(pages.settings.secret_keys)},
    )
    history = History(tmp_path / "history")
    made = Load(addresses, history, seed=3, rate=12)
    with (
        open_as("mizan_api", pages.settings.database, "api") as database,
        serve(make_app(pages.settings, database), port),
    ):
        yield made
        made.close()
    history.close()


def test_load_pays_by_every_method_records_what_it_saw_and_ends(
    load: Load, pages: CheckoutWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "_FINISH_S", 2.0)
    monkeypatch.setattr(load_module, "_SECONDS_BETWEEN_ACTIONS", 1.0)
    load.start()
    try:
        eventually(lambda: _has_done_enough(tmp_path / "history"))
    finally:
        load.stop()
    counters = load.counters()
    assert counters.unexpected == 0
    assert counters.payments > 5
    load.retrieve_all()
    records = list(read_history(tmp_path / "history"))

    assert len([one for one in records if isinstance(one, ApplicationRegistered)]) == 12
    statuses = dict(pages.rows("select uuid::text, status from payment_intents"))
    retrieved = [one for one in records if isinstance(one, RetrieveAnswered) and one.after_settling]
    assert {one.uuid: one.intent and one.intent.status for one in retrieved} == statuses
    assert sorted(uuid for _, uuid in load.acknowledged_intents()) == sorted(statuses)
    paid = {one.uuid for one in records if isinstance(one, CustomerClicked) and one.page == "paid"}
    assert {statuses[uuid] for uuid in paid} == {"succeeded"}
    _check_creates(records)
    _check_operators(records, pages)


def _has_done_enough(path: Path) -> bool:
    records = list(read_history(path))
    clicks = [one for one in records if isinstance(one, CustomerClicked)]
    pages_seen = {one.page for one in clicks}
    kinds = {type(one) for one in records}
    return (
        {one.method for one in clicks if one.page == "paid"} == {"card", "sadad", "adfali"}
        and {"paid", "declined", "code", None} <= pages_seen
        and any(isinstance(one, ChargeSettledLate) and one.acknowledged for one in records)
        and {SecretRolled, WebhooksPaused, WebhookUrlChanged} <= kinds
    )


def _check_creates(records: list[Record]) -> None:
    """One reference, one intent (§4.1), also if it was created several times at once."""
    creates = [one for one in records if isinstance(one, CreateAnswered)]
    by_reference: dict[tuple[str, str], set[str]] = {}
    for one in creates:
        assert one.http_status in (200, 201, None)
        if one.intent is not None:
            by_reference.setdefault((one.application, one.merchant_reference), set()).add(one.intent.uuid)
    assert {len(uuids) for uuids in by_reference.values()} == {1}
    assert len(creates) > len(by_reference)


def _check_operators(records: list[Record], pages: CheckoutWorld) -> None:
    """What was acknowledged is what the product has, and nothing stays paused."""
    secrets: dict[str, str] = {}
    urls: dict[str, str | None] = {}
    for one in records:
        if isinstance(one, ApplicationRegistered):
            secrets[one.application], urls[one.application] = one.secret, one.webhook_url
        if isinstance(one, SecretRolled):
            assert one.secret is not None
            secrets[one.application] = one.secret
        if isinstance(one, WebhookUrlChanged):
            urls[one.application] = one.webhook_url
    rows = pages.rows(
        "select id::text, webhook_url, webhook_secret_version, webhooks_paused_at from applications"
        " where webhook_url is not null"
    )
    assert {row[0]: row[1] for row in rows} == urls
    assert [row[3] for row in rows] == [None] * 12
    with pages.database.transaction() as connection:
        assert {row[0]: _secret(connection, pages, row[0], row[2]) for row in rows} == secrets


def _secret(connection: Connection[object], pages: CheckoutWorld, application: str, version: int) -> str:
    uuid = parse_uuid(application)
    assert uuid is not None
    return decrypt_webhook_secret(connection, pages.box, uuid, version).text
