"""Nothing is lost if a container is killed, or if everything is stopped and started again."""

from tests.compose.installation import Installation


def test_killed_worker_recovers(mizan: Installation) -> None:
    """After kill -9 of webhooks and scheduler, payments still work and every webhook arrives."""
    before = [mizan.project.kill(name) for name in ("webhooks", "scheduler")]
    intents = [mizan.create_paid_intent() for _ in range(3)]
    for container in before:
        mizan.project.wait_restarted(container)
    for intent in intents:
        mizan.wait_delivered(intent)
    mizan.audit()


def test_killed_kafka_recovers(mizan: Installation) -> None:
    """Without Kafka payments still work, and their events wait in PostgreSQL."""
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


def test_down_and_up_again(mizan: Installation) -> None:
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
