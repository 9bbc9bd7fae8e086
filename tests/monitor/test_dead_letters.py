"""Dead letters in the monitor are shown without secrets, and each is replayed once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.domain.topics import CHECKOUT_VERIFY, DEAD_LETTERS, WEBHOOKS_DELIVER
from tests.monitor.world import MonitorWorld
from tests.page_client import PageClient
from tests.shared.domain.dead_letters.dead_letter_topic import DeadLetterTopic


def replay(person: PageClient, offset: int = 0, **fields: str) -> int:
    answer = person.post(f"/dead-letters/{offset}/replay", **fields)
    return answer.history[0].status_code if answer.history else answer.status_code


def test_dead_letters_page_says_if_there_are_none(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    assert operator.open("/dead-letters").status_code == 200
    assert "There are no dead letters" in operator.text


def test_dead_letters_are_listed_newest_first_page_by_page(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(60)
    seen: list[int] = []
    path = "/dead-letters"
    while path:
        text = operator.open(path).text
        seen += [
            int(part.partition('"')[0])
            for part in text.split('data-label="Dead since"><a href="/dead-letters/')[1:]
        ]
        path = text.partition('rel="next" href="')[2].partition('"')[0]
    assert seen == list(reversed(range(60)))


def test_dead_letters_are_filtered_by_origin(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add(
        dead_letter_topic.letter(reason="of deliver"),
        dead_letter_topic.letter(topic=dead_letter_topic.topic_name(CHECKOUT_VERIFY), reason="of verify"),
    )
    operator.open("/dead-letters?origin=checkout.verify")
    assert "of verify" in operator.text
    assert "of deliver" not in operator.text
    assert "of deliver" in operator.open("/dead-letters?origin=no.such").text


def test_invalid_page_offset_shows_the_newest_dead_letters(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(1)
    for before in ("x", "-1", "9" * 30, "٣", "%00"):
        assert operator.open(f"/dead-letters?before={before}").status_code == 200, before
        assert "Not yet" in operator.text, before


def test_dead_letter_is_shown_without_its_secrets_and_escaped(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    value = b'{"api_key": "sk_live_abcdef123456", "card": "4242424242424242", "html": "<script>alert(1)</script>"}'
    dead_letter_topic.add(
        dead_letter_topic.letter(value, key=b"<b>key</b>", reason="<img src=x onerror=alert(2)>")
    )
    html = operator.open("/dead-letters/0").text
    for hidden in ("abcdef123456", "4242424242424242", "<script>alert", "<b>key", "<img src=x"):
        assert hidden not in html
    assert "alert(1)" in operator.text
    assert "webhooks.deliver" in operator.text


def test_a_malformed_dead_letter_is_shown(dead_letter_topic: DeadLetterTopic, operator: PageClient) -> None:
    dead_letter_topic.put(DEAD_LETTERS, [(None, b"\xff\x00<script>alert(1)</script>"), (None, None)])
    for offset in (0, 1):
        html = operator.open(f"/dead-letters/{offset}").text
        assert "this is not a dead letter" in operator.text
        assert "cannot be replayed" in operator.text
        assert "<script>alert" not in html
    assert operator.open("/dead-letters").status_code == 200


@pytest.mark.usefixtures("dead_letter_topic")
def test_dead_letter_at_an_unknown_offset_is_404(operator: PageClient) -> None:
    for path in ("/dead-letters/0", f"/dead-letters/{'9' * 40}", "/dead-letters/-1"):
        assert operator.open(path).status_code == 404, path


def test_dead_letter_is_replayed_once(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    """A second submit changes nothing, and the audit log names the operator."""
    dead_letter_topic.add(dead_letter_topic.letter(b"\x00 byte for byte"))
    form = operator.open("/dead-letters/0")
    assert replay(operator) == 303
    assert "written back to its topic" in operator.text
    operator.response = form
    replay(operator)
    assert "It was already replayed" in operator.text
    (record,) = dead_letter_topic.records(WEBHOOKS_DELIVER)
    assert (record.key, record.value) == (b"application", b"\x00 byte for byte")
    ((actor, address, merchant_id),) = pages.rows(
        "select actor, address, merchant_id from audit_log where action = 'letter_replayed'"
    )
    assert actor.startswith("operator operator-")
    assert (address, merchant_id) == ("127.0.0.1", None)
    assert "Replayed" in operator.open("/dead-letters").text


def test_concurrent_operators_replay_a_dead_letter_once(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic
) -> None:
    dead_letter_topic.add_many(1)
    people = [pages.person() for _ in range(3)]
    for person in people:
        person.open("/dead-letters/0")
    with ThreadPoolExecutor() as pool:
        list(pool.map(replay, people))
    assert dead_letter_topic.numbers() == [0]
    assert pages.audit().count("letter_replayed") == 1
    assert sum("It was already replayed" in person.text for person in people) == 2


def test_replay_with_an_invalid_dead_letter_id_is_422(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(1)
    for letter in ("", "x", "0' or 1=1"):
        operator.open("/dead-letters/0")
        assert replay(operator, dead_letter=letter) == 422, letter
    assert dead_letter_topic.numbers() == []


def test_replay_is_refused_if_another_dead_letter_has_that_offset(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    """As if the topic had been recreated while the page was open."""
    dead_letter_topic.add_many(1)
    operator.open("/dead-letters/0")
    assert replay(operator, dead_letter="6e1f6a54-1f2b-5c0e-9d7b-6d697a616e00") == 404
    assert dead_letter_topic.numbers() == []


def test_a_record_of_an_unconsumed_topic_is_not_replayed(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add(dead_letter_topic.letter(topic=dead_letter_topic.topic_name(DEAD_LETTERS)))
    letter = dead_letter_topic.look()
    operator.open("/dead-letters/0")
    assert "cannot be replayed" in operator.text
    replay(operator, dead_letter=str(letter.id))
    assert "No consumer reads the topic" in operator.text
    assert "letter_replayed" not in pages.audit()


def test_replaying_needs_a_session_and_a_csrf_token(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(1)
    letter = str(dead_letter_topic.look().id)
    guest = pages.person(is_operator=False)
    assert replay(guest, dead_letter=letter) in (400, 401)
    operator.open("/dead-letters/0")
    assert replay(operator, csrf_token="x") == 400
    assert dead_letter_topic.numbers() == []


def test_dead_letter_pages_are_503_without_kafka_and_write_nothing(without_kafka: MonitorWorld) -> None:
    person = without_kafka.person()
    letter = "6e1f6a54-1f2b-5c0e-9d7b-6d697a616e00"
    for path in ("/dead-letters", "/dead-letters/0", "/dead-letters/replay-all", "/exhausted"):
        assert person.open(path).status_code == 503
        assert person.title == "Kafka does not answer"
    person.open("/account")
    assert replay(person, dead_letter=letter) == 503
    assert "may have been done, or not" in person.text, "what was on the wire can still arrive"
    assert person.post("/dead-letters/replays", run=letter).status_code == 503
    for table in ("dead_letter_replays", "dead_letter_bulk_replays"):
        assert without_kafka.rows(f"select from {table}") == []
    assert without_kafka.audit() == ["signed_in"]
    for path in ("/attempts", "/applications", "/exhausted/resends", "/exhausted/resend-all"):
        assert person.open(path).status_code == 200


def test_dismissed_dead_letter_leaves_the_list_with_a_reason_and_can_be_replayed(
    pages: MonitorWorld, dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(1)
    operator.open("/dead-letters/0")
    assert operator.post("/dead-letters/0/dismiss", reason="no").status_code == 422
    assert "Write 5 to 500 characters" in operator.text
    operator.post("/dead-letters/0/dismiss", reason="<b>paid in cash</b>, card 4242424242424242\x00")
    assert "Dismissed. It is no longer counted" in operator.text
    assert "&lt;b&gt;paid in cash&lt;/b&gt;" in operator.response.text
    assert "4242424242424242" not in operator.response.text
    assert "/dead-letters/0" not in operator.open("/dead-letters").text
    assert "/dead-letters/0" in operator.open("/dead-letters?show=dismissed").text
    assert "paid in cash" in operator.text
    operator.open("/dead-letters/0")
    assert replay(operator) == 303
    assert len(dead_letter_topic.records()) == 1
    assert pages.audit()[-2:] == ["letter_dismissed", "letter_replayed"]


def test_dismissing_another_dead_letter_than_the_page_showed_is_404(
    dead_letter_topic: DeadLetterTopic, operator: PageClient
) -> None:
    dead_letter_topic.add_many(2)
    operator.open("/dead-letters/0")
    hidden = operator.hidden("/dead-letters/0/dismiss")
    operator.open("/dead-letters/1")
    answer = operator.post(
        "/dead-letters/1/dismiss", dead_letter=hidden["dead_letter"], reason="a good reason"
    )
    assert answer.status_code == 404
    operator.open("/dead-letters/1")
    assert operator.post("/dead-letters/1/dismiss", dead_letter="x", reason="a reason").status_code == 422
    assert dead_letter_topic.rows("select from dead_letter_dismissals") == []
