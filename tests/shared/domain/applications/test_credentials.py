"""API keys and access tokens: issued, listed, revoked."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from shared.domain.applications.credentials import (
    Credential,
    CredentialKind,
    find_credential,
    issue_credential,
    list_credentials,
    revoke_credential,
)
from shared.domain.applications.errors import (
    ApplicationNotFoundError,
    CredentialAmbiguousError,
    CredentialExistsError,
    CredentialNotFoundError,
)
from shared.platform.database.pool import Database
from shared.platform.tokens import hash_token, token_prefix
from tests.clock import Clock
from tests.shared.domain.applications.conftest import Create, Rows


def _list(database: Database, application_id: UUID) -> list[Credential]:
    with database.transaction() as connection:
        return list_credentials(connection, application_id)


def _revoke(database: Database, application_id: UUID, credential_id: UUID) -> bool:
    with database.transaction() as connection:
        return revoke_credential(connection, application_id, credential_id)


@pytest.mark.parametrize("kind", CredentialKind)
def test_application_may_have_several_credentials(
    database: Database, create: Create, rows: Rows, kind: CredentialKind
) -> None:
    """So that they can be rotated without an outage; only hash and prefix are stored."""
    application_id = create().id
    with database.transaction() as connection:
        issued = issue_credential(connection, application_id, kind)
    listed = _list(database, application_id)
    assert len(listed) == 3
    assert (listed[-1].id, listed[-1].kind) == (issued.id, kind)
    assert issued.text.startswith(listed[-1].prefix)
    assert rows("select hash from credentials where id = %s", issued.id) == [(hash_token(issued.text),)]
    assert issued.text not in repr(issued)


def test_credential_id_is_issued_once(database: Database, create: Create, rows: Rows) -> None:
    """For the same or another application; the credential issued before is not changed."""
    mine, other, request_id = create("a"), create("b"), uuid4()
    with database.transaction() as connection:
        issued = issue_credential(connection, mine.id, CredentialKind.API_KEY, credential_id=request_id)
    assert issued.id == request_id
    assert issued.prefix == token_prefix(issued.text)
    before = rows("select * from credentials order by id")
    for application_id in (mine.id, other.id):
        with pytest.raises(CredentialExistsError), database.transaction() as connection:
            issue_credential(
                connection, application_id, CredentialKind.ACCESS_TOKEN, credential_id=request_id
            )
    assert rows("select * from credentials order by id") == before


def test_kinds_equal_the_check_constraint_of_the_table(rows: Rows) -> None:
    ((check,),) = rows(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'credentials_kind_check'"
    )
    assert {word for word in check.split("'") if word.isidentifier()} == set(CredentialKind)


def test_revoked_credential_stays_listed_with_its_time(
    database: Database, create: Create, clock: Clock
) -> None:
    """Revoking again changes nothing and returns False; the others stay valid."""
    application_id = create().id
    key = _list(database, application_id)[0]
    clock.advance(timedelta(days=1))
    assert _revoke(database, application_id, key.id) is True
    at = _list(database, application_id)[0].revoked_at
    assert at is not None
    assert at - key.created_at >= timedelta(days=1)
    clock.advance(timedelta(days=1))
    assert _revoke(database, application_id, key.id) is False
    assert [credential.revoked_at for credential in _list(database, application_id)] == [at, None]


def test_another_applications_credential_cannot_be_revoked(database: Database, create: Create) -> None:
    """Access to one application gives no access to another."""
    mine, other = create("a"), create("b")
    theirs = _list(database, other.id)[0]
    with pytest.raises(CredentialNotFoundError):
        _revoke(database, mine.id, theirs.id)
    assert _list(database, other.id)[0].revoked_at is None


def test_credential_is_found_by_id_or_prefix(database: Database, create: Create) -> None:
    """Or by the beginning of a prefix, if it is unique."""
    application_id = create().id
    key, token = _list(database, application_id)
    with database.transaction() as connection:
        for start, expected in [
            (str(key.id), key),
            (str(key.id).upper(), key),
            (key.prefix, key),
            ("pk_", key),
            (token.prefix[:5], token),
        ]:
            assert find_credential(connection, application_id, start) == expected


def test_ambiguous_prefix_is_refused(database: Database, create: Create) -> None:
    """The error lists the credentials to choose from."""
    application_id = create().id
    with database.transaction() as connection:
        issue_credential(connection, application_id, CredentialKind.API_KEY)
    keys = [c for c in _list(database, application_id) if c.kind is CredentialKind.API_KEY]
    with pytest.raises(CredentialAmbiguousError) as caught, database.transaction() as connection:
        find_credential(connection, application_id, "pk_")
    assert all(f"{key.prefix} ({key.id})" in str(caught.value) for key in keys)
    assert "at_" not in str(caught.value)


def test_unknown_prefix_is_refused(database: Database, create: Create) -> None:
    """Also an empty one, and the whole key of another application, which the error does not repeat."""
    made, other = create(), create()
    for start in ("", "whsec_", "%", "pk_\x00", "\udcff", made.api_key[:-1], other.api_key):
        with pytest.raises(CredentialNotFoundError) as caught, database.transaction() as connection:
            find_credential(connection, made.id, start)
        assert made.api_key[:-1] not in str(caught.value)
        assert other.api_key not in str(caught.value)


def test_credential_is_found_by_its_full_text(database: Database, create: Create) -> None:
    """The leaked key may be all that an operator has."""
    made = create()
    with database.transaction() as connection:
        for text, kind in (
            (made.api_key, CredentialKind.API_KEY),
            (made.access_token, CredentialKind.ACCESS_TOKEN),
        ):
            found = find_credential(connection, made.id, text)
            assert (found.kind, text.startswith(found.prefix)) == (kind, True)


def test_unknown_application_is_an_error(database: Database) -> None:
    """Not an empty list, nor an error about foreign keys."""
    unknown = uuid4()
    with pytest.raises(ApplicationNotFoundError, match=str(unknown)):
        _list(database, unknown)
    with (
        pytest.raises(ApplicationNotFoundError, match=str(unknown)),
        database.transaction() as connection,
    ):
        issue_credential(connection, unknown, CredentialKind.API_KEY)
