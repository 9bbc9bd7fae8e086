"""Regression tests: former ways around the sign-in throttle and sessions."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from threading import Event, Thread

import pytest

from shared.domain.accounts import passwords
from shared.domain.accounts.members import find_members_by_email
from shared.domain.accounts.passwords import hash_password, is_password
from shared.domain.accounts.roles import Role
from shared.domain.accounts.sessions import end_other_sessions, find_session, start_session
from shared.domain.accounts.throttles import (
    ACCOUNT,
    ADDRESS,
    GuessedAccount,
    SignInThrottle,
    SignInThrottledError,
)
from shared.domain.accounts.users import change_password, find_user
from tests.clock import Clock
from tests.dashboard.world import PASSWORD, DashboardWorld
from tests.postgres_statistics import count_lock_waits
from tests.waiting import eventually

WRONG = "not the password at all"


@pytest.mark.parametrize("disguise", ["{} ", " {}", "{}\u2003", "{}\t", "{}" + " " * 300])
def test_whitespace_around_an_email_does_not_avoid_the_throttle(
    pages: DashboardWorld, clock: Clock, disguise: str
) -> None:
    email = pages.make_member(Role.OWNER)
    clock.stop_at(clock.now())
    person = pages.person()
    for _ in range(ACCOUNT.free):
        assert person.sign_in(disguise.format(email), WRONG).status_code == 422
    assert person.sign_in(email, PASSWORD).status_code == 429


def test_an_invalid_email_address_has_no_account(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    for disguise in ("{}\0", "{} \0", "{}" + " " * 254 + "z", "\u200e{}", "{}\u00ad"):
        assert pages.person().sign_in(disguise.format(email), PASSWORD).status_code == 422, disguise


def test_guesses_in_a_known_browser_count_for_other_browsers(pages: DashboardWorld, clock: Clock) -> None:
    email = pages.make_member(Role.OWNER)
    known = pages.person()
    known.sign_in(email, PASSWORD)
    known.post("/sign-out")
    clock.stop_at(clock.now())
    for _ in range(ACCOUNT.free):
        assert known.sign_in(email, WRONG).status_code == 422
    assert pages.person().sign_in(email, PASSWORD).status_code == 429


def test_browser_is_known_as_long_as_the_password_stays_the_same(pages: DashboardWorld, clock: Clock) -> None:
    """Who has once known a password cannot keep browsers with guesses of their own."""
    email = pages.make_member(Role.OWNER)
    changes, old = pages.person(), pages.person()
    for person in (changes, old):
        person.sign_in(email, PASSWORD)
    changes.open("/account")
    changes.post("/account/password", current_password=PASSWORD, new_password="seven small boats at sea")
    changes.post("/sign-out")
    clock.stop_at(clock.now())
    guesser = pages.person()
    for _ in range(ACCOUNT.free):
        guesser.sign_in(email, WRONG)
    assert old.sign_in(email, "seven small boats at sea").status_code == 429
    assert changes.sign_in(email, "seven small boats at sea").url == f"{pages.url}/"


def test_a_known_browser_is_not_throttled_by_guesses_elsewhere(pages: DashboardWorld, clock: Clock) -> None:
    email = pages.make_member(Role.OWNER)
    owner = pages.person()
    owner.sign_in(email, PASSWORD)
    owner.post("/sign-out")
    clock.stop_at(clock.now())
    guesser = pages.person()
    for _ in range(ACCOUNT.free + 1):
        guesser.sign_in(email, WRONG)
    assert guesser.response.status_code == 429
    assert owner.sign_in(email, PASSWORD).url == f"{pages.url}/"
    assert guesser.sign_in(email, PASSWORD).status_code == 429, "elsewhere it is as before"


def test_known_browser_has_no_more_guesses_than_others(pages: DashboardWorld, clock: Clock) -> None:
    email = pages.make_member(Role.OWNER)
    person = pages.person()
    person.sign_in(email, PASSWORD)
    person.post("/sign-out")
    clock.stop_at(clock.now())
    statuses = [person.sign_in(email, WRONG).status_code for _ in range(ACCOUNT.free + 1)]
    assert statuses == [422] * ACCOUNT.free + [429]


def test_addresses_of_one_network_are_throttled_together(world: DashboardWorld, clock: Clock) -> None:
    clock.stop_at(clock.now())
    throttles = SignInThrottle(b"key")

    def count(number: int, address: str) -> None:
        with world.database.transaction() as connection:
            throttles.count_attempt(connection, GuessedAccount(f"account-{number}"), address)

    for number in range(ADDRESS.free):
        count(number, f"2001:db8:1:2::{number:x}")
    with pytest.raises(SignInThrottledError):
        count(1000, "2001:db8:1:2:ffff::1")
    count(1001, "2001:db8:1:3::1")
    for number in range(ADDRESS.free):
        count(2000 + number, "192.0.2.7" if number % 2 else "::ffff:192.0.2.7")
    with pytest.raises(SignInThrottledError):
        count(3000, "192.0.2.7")


def test_concurrent_sign_ins_do_not_deadlock(world: DashboardWorld) -> None:
    """None is refused, and none is left as a failure: not of the account, nor of the browser or the address."""
    throttles = SignInThrottle(b"key")

    def sign_in(number: int) -> None:
        account = GuessedAccount("one", "browser" if number % 2 else None)
        with world.database.transaction() as connection:
            attempt = throttles.count_attempt(connection, account, "192.0.2.7")
        with world.database.transaction() as connection:
            throttles.record_success(connection, attempt)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(sign_in, range(100)))
    assert world.rows("select failures from login_throttles where failures <> 0") == []
    with world.database.transaction() as connection:  # a single failure counts as the first one
        throttles.count_attempt(connection, GuessedAccount("one"), "192.0.2.7")
    assert world.rows("select failures from login_throttles where failures <> 0") == [(1,), (1,)]


def test_ended_session_is_not_revived_by_a_concurrent_request(world: DashboardWorld, clock: Clock) -> None:
    """The request waits for the lock of the row while the session is ended."""
    email = world.make_member(Role.OWNER)
    with world.database.cursor() as cursor:
        (member,) = find_members_by_email(cursor, email)
    with world.database.transaction() as connection:
        token = start_session(connection, member.id, "192.0.2.7", "a browser")
    clock.advance(timedelta(minutes=2))
    began = Event()

    def use() -> None:
        began.set()
        with world.database.cursor() as cursor:
            find_session(cursor, token)

    using = Thread(target=use)
    with world.database.transaction() as connection:
        end_other_sessions(connection, member.id, kept=b"")
        using.start()
        began.wait(10)
        eventually(lambda: count_lock_waits(world.database))
    using.join(10)
    with world.database.cursor() as cursor:
        assert find_session(cursor, token) is None


def test_password_changed_during_a_sign_in_counts(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = pages.make_member(Role.OWNER)

    def change_meanwhile(hashed: str | None, text: str) -> bool:
        is_right = is_password(hashed, text)
        _change_password(pages, email, "another one altogether")
        return is_right

    monkeypatch.setattr(passwords, "is_password", change_meanwhile)
    assert pages.person().sign_in(email, PASSWORD).status_code == 422
    monkeypatch.undo()
    assert pages.person().sign_in(email, "another one altogether").url == f"{pages.url}/"


def test_choice_of_merchants_is_invalid_after_the_password_was_changed(pages: DashboardWorld) -> None:
    email = pages.make_member(Role.OWNER)
    pages.make_member(Role.VIEWER, pages.make_merchant("Benghazi Books"), email)
    person = pages.person()
    person.sign_in(email, PASSWORD)
    assert person.title == "Choose a merchant"
    member = pages.rows("select id from members where email = %s order by id", email)[0][0]
    _change_password(pages, email, "another one altogether")
    assert person.post("/sign-in/merchant", member=str(member)).url == f"{pages.url}/sign-in"


def test_one_hash_is_computed_for_all_memberships(
    pages: DashboardWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the timing does not reveal how many there are."""
    email = pages.make_member(Role.OWNER)
    for name in ("a", "b", "c"):
        pages.make_member(Role.VIEWER, pages.make_merchant(name), email)
    computed: list[str | None] = []

    def count(hashed: str | None, text: str) -> bool:
        computed.append(hashed)
        return is_password(hashed, text)

    monkeypatch.setattr(passwords, "is_password", count)
    assert pages.person().sign_in(email, WRONG).status_code == 422
    assert len(computed) == 1


@pytest.mark.usefixtures("costly_passwords")
def test_passwords_are_hashed_with_the_parameters_of_rfc_9106() -> None:
    """Its second recommended option, with less memory."""
    assert hash_password("one password here").startswith("$argon2id$v=19$m=65536,t=3,p=4$")


def test_hashes_of_one_password_have_different_salts() -> None:
    first, second = hash_password("one password here"), hash_password("one password here")
    assert first != second
    assert is_password(first, "one password here")
    assert is_password(second, "one password here")
    assert not is_password(first, "another password")
    assert not is_password(None, "one password here")


def test_too_many_concurrent_passwords_are_refused(pages: DashboardWorld) -> None:
    """So they do not occupy the threads that pages need."""
    person = pages.person()
    email = pages.make_member(Role.OWNER)
    with ExitStack() as line:
        for _ in range(8):
            passwords._queue_slots.acquire()
            line.callback(passwords._queue_slots.release)
        busy = person.sign_in(email, PASSWORD)
        assert (busy.status_code, busy.headers["Retry-After"]) == (503, "1")
    assert person.sign_in(email, PASSWORD).url == f"{pages.url}/"


def _change_password(pages: DashboardWorld, email: str, password: str) -> None:
    with pages.database.transaction() as connection:
        user = find_user(connection, email)
        assert user is not None
        assert change_password(connection, user, password, kept=b"")
