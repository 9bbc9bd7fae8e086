"""What happens in containers when something is killed, or everything is stopped and started again: nothing is lost."""

from tests.compose.installation import Installation


def test_killed_worker_comes_back(mizan: Installation) -> None:
    """kill -9 of the webhooks and of the scheduler: payments go on, and every webhook arrives."""
    before = [mizan.project.kill(name) for name in ("webhooks", "scheduler")]
    intents = [mizan.create_paid_intent() for _ in range(3)]
    for container in before:
        mizan.project.wait_restarted(container)
    for intent in intents:
        mizan.wait_delivered(intent)
    mizan.audit()


def test_killed_kafka_comes_back(mizan: Installation) -> None:
    """While it is away payments go on; what they tell waits in PostgreSQL."""
    before = mizan.project.kill("kafka")
    intents = [mizan.create_paid_intent() for _ in range(3)]
    mizan.project.wait_restarted(before)
    for intent in intents:
        mizan.wait_delivered(intent)
    mizan.audit()


def test_killed_postgres_comes_back(mizan: Installation) -> None:
    intent = mizan.create_paid_intent()
    mizan.project.wait_restarted(mizan.project.kill("postgres"))
    assert mizan.status(intent) == "succeeded"
    mizan.wait_delivered(mizan.create_paid_intent())
    mizan.audit()


def test_down_and_up_again(mizan: Installation) -> None:
    """Containers are nothing, volumes are all: payments, credentials and the bank's ledger are still there."""
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
