"""Dead letters as operators see them: origin, reason and content, whatever the content is."""

from datetime import UTC, datetime, timedelta, timezone
from time import monotonic
from uuid import UUID, uuid4

import pytest

from shared.domain.dead_letters.preview import TEXT_LIMIT, preview_text
from shared.domain.dead_letters.queries import DeadLetterNotFoundError, find_dead_letter
from shared.domain.messages import encode
from shared.domain.topics import CHECKOUT_VERIFY, DEAD_LETTERS
from tests.shared.domain.dead_letters.dead_letter_topic import BEGINNING, DeadLetterTopic
from tests.shared.platform.kafka.harness import event


def test_dead_letter_shows_origin_group_reason_and_content(dead_letter_topic: DeadLetterTopic) -> None:
    """Topics and groups are named without the prefix of the installation."""
    dead_letter_topic.add(dead_letter_topic.letter(b'{"step":1,"due":null}', at=BEGINNING))
    letter = dead_letter_topic.look()
    assert (letter.offset, letter.at) == (0, BEGINNING)
    assert (letter.topic, letter.partition, letter.origin_offset) == ("webhooks.deliver", 1, 1)
    assert (letter.group, letter.reason) == ("webhooks.deliver", "failed 3 times: KeyError('x')")
    assert (letter.key, letter.value) == ("application", '{\n  "step": 1,\n  "due": null\n}')
    assert (letter.size, letter.is_whole, letter.replayed) == (21, True, None)


def test_dead_letter_id_is_stable_and_unique(dead_letter_topic: DeadLetterTopic) -> None:
    """It is derived from origin, group and time."""
    first = dead_letter_topic.letter()
    dead_letter_topic.add(
        first,
        dead_letter_topic.letter(),
        dead_letter_topic.letter(offset=first.offset, at=first.at, group="other"),
    )
    ids = [letter.id for letter in dead_letter_topic.page().dead_letters]
    assert len(set(ids)) == 3
    assert ids == [letter.id for letter in dead_letter_topic.page().dead_letters]
    assert {one.version for one in ids} == {5}


def test_dead_letters_are_paged_and_filtered_by_origin(dead_letter_topic: DeadLetterTopic) -> None:
    """With a filter, a page is filled from as far back as needed."""
    for _ in range(4):
        dead_letter_topic.add_many(1, topic=dead_letter_topic.topic_name(CHECKOUT_VERIFY))
        dead_letter_topic.add_many(9)
    page = dead_letter_topic.page(most=15)
    assert [letter.offset for letter in page.dead_letters] == list(range(39, 24, -1))
    rest = dead_letter_topic.page(before=page.next_before, most=50)
    assert [letter.offset for letter in rest.dead_letters] == list(range(24, -1, -1))
    assert rest.next_before is None
    found = dead_letter_topic.page(most=3, origin="checkout.verify")
    assert [letter.offset for letter in found.dead_letters] == [30, 20, 10]
    last = dead_letter_topic.page(before=found.next_before, most=3, origin="checkout.verify")
    assert [letter.offset for letter in last.dead_letters] == [0]
    assert dead_letter_topic.page(origin="webhooks.slow").dead_letters == []


def test_dead_letter_is_found_by_its_id(dead_letter_topic: DeadLetterTopic) -> None:
    dead_letter_topic.add_many(60)
    wanted = dead_letter_topic.look(7)
    with dead_letter_topic.database.transaction() as connection:
        assert find_dead_letter(connection, dead_letter_topic.kafka, wanted.id) == wanted
        with pytest.raises(DeadLetterNotFoundError):
            find_dead_letter(connection, dead_letter_topic.kafka, uuid4())


@pytest.mark.parametrize("offset", [-1, 0, 1, 2**62])
def test_unknown_offset_is_not_found(dead_letter_topic: DeadLetterTopic, offset: int) -> None:
    """It was deleted by retention, does not exist yet, or is invalid."""
    dead_letter_topic.add_many(1)
    dead_letter_topic.forget_until(DEAD_LETTERS, 0, 1)
    with pytest.raises(DeadLetterNotFoundError, match="kept for 30 days"):
        dead_letter_topic.look(offset)


@pytest.mark.parametrize(
    "value",
    [
        b'{"webhook_secret": "whsec_hushhushhush", "card": {"number": "4242424242424242"}}',
        b'{"note": "call 0913632323, pay with 4242 4242 4242 4242", "token": "hushhushhush"}',
        b'[{"phone": 218913632323}, "Authorization: Bearer hushhushhush"]',
        b"password=hushhushhush\nphone 0913632323\n4242 4242 4242 4242",
        b'{"otp": "hushhushhush", "broken": "4242424242424242"',
        "رقم ٠٩١٣٦٣٢٣٢٣ \u200f4242\u200f4242\u200f4242\u200f4242 api_key: hushhushhush".encode(),
    ],
)
def test_no_secret_is_shown(dead_letter_topic: DeadLetterTopic, value: bytes) -> None:
    """Neither in the value nor in the key or the reason."""
    dead_letter_topic.add(dead_letter_topic.letter(value, key=value, reason=f"unreadable: {value.decode()}"))
    letter = dead_letter_topic.look()
    for shown in (letter.value, letter.key, letter.reason):
        plain = "".join(character for character in shown if character.isalnum())
        assert "hushhush" not in plain
        assert "42424242" not in plain
        assert "13632323" not in plain
        assert "[redacted]" in shown


def test_control_characters_are_made_visible(dead_letter_topic: DeadLetterTopic) -> None:
    """As bytes, as JSON escapes, and those that change the text direction."""
    evil = "\x1b]0;owned\x07\x1b[2J\u202e\u0085 \x00 \x7f"
    for value in (evil.encode(), b'{"x": "\\u001b[2J\\u202e\\u009b"}'):
        dead_letter_topic.add(
            dead_letter_topic.letter(value, key=value, reason=evil, topic=f"x{evil}", group=f"y{evil}")
        )
    for letter in dead_letter_topic.page().dead_letters:
        for shown in (letter.value, letter.key, letter.reason, letter.topic, letter.group):
            assert all(character == "\n" or character.isprintable() for character in shown), shown
    assert "␛[2J" in dead_letter_topic.look(0).value


def test_invalid_text_is_shown(dead_letter_topic: DeadLetterTopic) -> None:
    """Invalid UTF-8; HTML, which the page escapes; JSON that cannot be formatted."""
    deep = b"[" * 50_000
    for value in (b"\xff\xfe<b>", b"<script>alert(1)</script>", deep, b"9" * 5_000, b"", None):
        dead_letter_topic.add(dead_letter_topic.letter(value))
    shown = [letter.value for letter in reversed(dead_letter_topic.page().dead_letters)]
    assert shown[0] == "\ufffd\ufffd<b>"
    assert shown[1] == "<script>alert(1)</script>"
    assert shown[2].startswith("[[[[")
    assert shown[4:] == ["", ""]


@pytest.mark.parametrize("filling", [b"x", b"\xff", b'{"a": "4242424242424242"},'])
def test_large_value_is_truncated(dead_letter_topic: DeadLetterTopic, filling: bytes) -> None:
    """The text says so, the full size is shown, and it takes little time."""
    value = (filling * (1024 * 1024 // len(filling) + 1))[: 1024 * 1024]
    dead_letter_topic.add(dead_letter_topic.letter(value))
    began = monotonic()
    letter = dead_letter_topic.look()
    assert monotonic() - began < 10
    assert len(letter.value) < TEXT_LIMIT + 100
    assert letter.value.endswith("cut here")
    assert "42424242" not in letter.value
    assert (letter.size, letter.is_whole) == (1024 * 1024, True)


def test_half_of_a_card_number_is_not_shown() -> None:
    """The preview is cut inside a card number, which is then no longer recognised. The text before it shrinks so much
    by redaction that this end would be shown.
    """
    piece = b'token="' + b"x" * 1000 + b'" 4242424242424242 '
    card = piece.index(b"4242")
    for place in range(card + 5, card + 16):
        shift = (4 * TEXT_LIMIT - place) % len(piece)
        assert "42424" not in preview_text(b" " * shift + piece * 100)


def test_value_too_large_for_a_dead_letter_shows_only_its_size(dead_letter_topic: DeadLetterTopic) -> None:
    reason = "failed (its value of 3000000 bytes is too large for this topic; see its origin)"
    dead_letter_topic.add(dead_letter_topic.letter(None, reason=reason))
    letter = dead_letter_topic.look()
    assert (letter.size, letter.is_whole, letter.value) == (3_000_000, False, "")


@pytest.mark.parametrize("value", [b"\xff\xff", None, b"[1", b'{"kind": "dead_letter.v9"}', encode(event(1))])
def test_record_that_is_not_a_dead_letter_is_shown_as_such(
    dead_letter_topic: DeadLetterTopic, value: bytes | None
) -> None:
    """The dead letters before and after it are shown as usual."""
    dead_letter_topic.add_many(1)
    dead_letter_topic.put(DEAD_LETTERS, [(b"key", value)])
    dead_letter_topic.add_many(1)
    newest, odd, oldest = dead_letter_topic.page().dead_letters
    assert (newest.topic, oldest.topic) == ("webhooks.deliver", "webhooks.deliver")
    assert odd.reason.startswith("this is not a dead letter: ")
    assert (odd.topic, odd.origin_offset, odd.key, odd.group) == ("dead_letters", 1, "key", "")
    assert isinstance(odd.id, UUID)


def test_times_without_a_zone_and_extreme_times_are_read(dead_letter_topic: DeadLetterTopic) -> None:
    """A time without a zone is taken for UTC; the first possible day works too."""
    first_day = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    dead_letter_topic.add(
        dead_letter_topic.letter(at=BEGINNING.replace(tzinfo=None)), dead_letter_topic.letter(at=first_day)
    )
    first, second = dead_letter_topic.look(0), dead_letter_topic.look(1)
    assert (first.at, second.at.tzinfo) == (BEGINNING, UTC)
