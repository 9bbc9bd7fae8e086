"""API keys and access tokens (§5): issued and shown once, kept as hashes, valid until revoked."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from shared.domain.applications.errors import (
    ApplicationNotFoundError,
    CredentialAmbiguousError,
    CredentialExistsError,
    CredentialNotFoundError,
)
from shared.domain.applications.modes import ApplicationMode
from shared.platform.tokens import hash_token, new_access_token, new_api_key, token_prefix
from shared.platform.uuids import parse_uuid


class CredentialKind(StrEnum):
    API_KEY = "api_key"
    ACCESS_TOKEN = "access_token"  # noqa: S105  the name of a kind


@dataclass(frozen=True, slots=True)
class IssuedCredential:
    id: UUID
    kind: CredentialKind
    text: str = field(repr=False)
    """The key or token itself; it exists nowhere else."""

    @property
    def prefix(self) -> str:
        return token_prefix(self.text)


@dataclass(frozen=True, slots=True)
class Credential:
    id: UUID
    kind: CredentialKind
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    """Accurate to the minute."""
    revoked_at: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", CredentialKind(self.kind))


@dataclass(frozen=True, slots=True)
class FormerMemberCredential:
    """An active credential whose issuer is no longer in the team. They may have kept a copy."""

    id: UUID
    kind: CredentialKind
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    application_id: UUID
    application_name: str
    issuer: str
    """The email address of the member who issued it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", CredentialKind(self.kind))


_ISSUE = """
insert into credentials (id, application_id, kind, prefix, hash, issued_by)
select coalesce(%s, uuidv7()), id, %s, %s, %s, %s from applications where id = %s
on conflict (id) do nothing returning id"""

_MODE = "select mode from applications where id = %s"

_LIST = """
select id, kind, prefix, created_at, last_used_at, revoked_at
from credentials where application_id = %s order by id"""

_OF_FORMER_MEMBERS = """
select c.id, c.kind, c.prefix, c.created_at, c.last_used_at, c.application_id, a.name as application_name,
       m.email as issuer
from credentials as c join applications as a on a.id = c.application_id join members as m on m.id = c.issued_by
where a.merchant_id = %s and c.revoked_at is null and m.removed_at is not null
order by m.removed_at desc, c.id"""

_BY_HASH = "select id from credentials where hash = %s and application_id = %s"

_REVOKE = """
update credentials set revoked_at = mizan_now()
where application_id = %s and id = %s and revoked_at is null
returning id"""


def issue_credential(
    connection: Connection[Any],
    application_id: UUID,
    kind: CredentialKind,
    *,
    credential_id: UUID | None = None,
    issued_by: UUID | None = None,
) -> IssuedCredential:
    """Issue a credential. `credential_id` makes it idempotent: a second call with it raises CredentialExistsError.

    `issued_by` is the member who issues it, None for an operator. Raises ApplicationNotFoundError.
    """
    mode = _find_mode(connection, application_id)
    text = new_api_key(mode) if kind is CredentialKind.API_KEY else new_access_token()
    values = (credential_id, kind, token_prefix(text), hash_token(text), issued_by, application_id)
    row = connection.execute(_ISSUE, values).fetchone()
    if row is None:
        assert credential_id is not None
        raise CredentialExistsError(credential_id)
    return IssuedCredential(id=row[0], kind=kind, text=text)


def list_credentials(connection: Connection[Any], application_id: UUID) -> list[Credential]:
    """Return all credentials, revoked ones too, oldest first. Raises ApplicationNotFoundError."""
    _find_mode(connection, application_id)  # raises
    with connection.cursor(row_factory=class_row(Credential)) as cursor:
        return cursor.execute(_LIST, (application_id,)).fetchall()


def list_credentials_of_former_members(
    connection: Connection[Any], merchant_id: UUID
) -> list[FormerMemberCredential]:
    """Return the active credentials that were issued by members who were removed since, the latest removed first."""
    with connection.cursor(row_factory=class_row(FormerMemberCredential)) as cursor:
        return cursor.execute(_OF_FORMER_MEMBERS, (merchant_id,)).fetchall()


def find_credential(connection: Connection[Any], application_id: UUID, start: str) -> Credential:
    """Return the only credential whose id or prefix starts like this, or the one whose whole key or token this is.

    Raises CredentialNotFoundError and CredentialAmbiguousError.
    """
    listed = list_credentials(connection, application_id)
    if start.isascii() and parse_uuid(start) is None:  # an id needs no search by hash
        whole = connection.execute(_BY_HASH, (hash_token(start), application_id)).fetchone()
        if whole is not None:
            return next(credential for credential in listed if credential.id == whole[0])
    found = [
        credential
        for credential in listed
        if start and (str(credential.id).startswith(start.lower()) or credential.prefix.startswith(start))
    ]
    if not found:
        raise CredentialNotFoundError
    if len(found) > 1:
        candidates = ", ".join(f"{credential.prefix} ({credential.id})" for credential in found)
        raise CredentialAmbiguousError(f"several credentials start like this: {candidates}")
    return found[0]


def revoke_credential(connection: Connection[Any], application_id: UUID, credential_id: UUID) -> bool:
    """Revoke a credential. Return False if it was revoked before. Raises CredentialNotFoundError."""
    if connection.execute(_REVOKE, (application_id, credential_id)).fetchone() is not None:
        return True
    find_credential(connection, application_id, str(credential_id))
    return False


def _find_mode(connection: Connection[Any], application_id: UUID) -> ApplicationMode:
    row = connection.execute(_MODE, (application_id,)).fetchone()
    if row is None:
        raise ApplicationNotFoundError(application_id)
    return ApplicationMode(row[0])
