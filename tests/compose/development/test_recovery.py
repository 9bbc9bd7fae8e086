"""Nothing is lost if a container is killed, or if everything is stopped and started again."""

from tests.compose.installation import Installation


def test_killed_webhooks_and_scheduler_recover(mizan: Installation) -> None:
    """Meanwhile payments succeed, and every webhook is delivered afterwards."""
    before = [mizan.project.kill(name) for name in ("webhooks", "scheduler")]
    intents = [mizan.create_paid_intent() for _ in range(3)]
    for container in before:
        mizan.project.wait_restarted(container)
    for intent in intents:
        mizan.wait_delivered(intent)
    mizan.audit()


def test_killed_kafka_recovers(mizan: Installation) -> None:
    """Meanwhile payments succeed, and their events wait in PostgreSQL."""
    before = mizan.project.kill("kafka")
    intents = [mizan.create_paid_intent() for _ in range(3)]
    mizan.project.wait_restarted(before)
    for intent in intents:
        mizan.wait_delivered(intent)
    mizan.audit()


def test_killed_postgres_recovers(mizan: Installation) -> None:
    intent = mizan.create_paid_intent()
    mizan.project.wait_restarted(mizan.project.kill("postgres"))
    assert mizan.status(intent) == "succeeded"
    mizan.wait_delivered(mizan.create_paid_intent())
    mizan.audit()


def test_data_survives_down_and_up(mizan: Installation) -> None:
    """Volumes keep payments, credentials and the ledger of the sandbox."""
    demo = mizan.demo()
    intent = mizan.create_paid_intent()
    mizan.project.down()
    assert mizan.project.containers() == []
    mizan.project.up()
    assert mizan.demo() == demo
    assert mizan.status(intent) == "succeeded"
    mizan.wait_delivered(intent)
    mizan.wait_delivered(mizan.create_paid_intent())
    mizan.audit()
