"""Creates users and ACLs on a cluster, and compares those that are there with what our principals need."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from enum import Enum
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from shared.platform.kafka import clients
from shared.platform.kafka.access import AccessDifferences, Acl, Principal, compare_access, open_listeners
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.settings import KafkaSettings

_T = TypeVar("_T")
_TIMEOUT_S = 10.0
_ANONYMOUS_TIMEOUT_S = 3.0
"""A broker closes the connection of a client that does not log in, and the client tries again until then."""
# Kafka's least. A password of ours is random and long, so more rounds would only make logging in slower.
_ITERATIONS = 4096
_TRANSIENT = (
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    # While a cluster starts, librdkafka forgets brokers that have not joined it yet, and requests to them.
    KafkaError._DESTROY_BROKER,  # noqa: SLF001
)
_USER = "User:"
_NOBODYS = Acl("mizan-nobody", "topic", "mizan-nothing", "read")
_CLUSTER = "broker"
"""What librdkafka calls the resource that Kafka calls the cluster."""


class AccessRefusedError(Exception):
    """Kafka refuses to show or change users or ACLs; the text says why, and another try would not help."""


class AccessAdmin:
    """Users and ACLs of a cluster, as seen by an admin. Methods raise AccessRefusedError and KafkaUnavailableError."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._prefix = settings.topic_prefix
        self._client: AdminClient = clients.admin(settings, "access")

    def compare(self, principals: Sequence[Principal], *, with_users: bool = True) -> AccessDifferences:
        """Return how the cluster differs from the declaration. `with_users`: also look for the users themselves."""
        self._check_rights()
        found = self.fetch_acls()
        users = self.fetch_users(each.name for each in principals) if with_users else None
        return compare_access(principals, self._prefix, found, users)

    def apply(self, principals: Sequence[Principal], *, with_users: bool = True) -> AccessDifferences:
        """Create the ACLs that are missing, remove those of ours that are too wide; return what differed before."""
        differences = self.compare(principals, with_users=with_users)
        self.create_acls(differences.missing)
        self.remove_acls(differences.too_wide)
        return differences

    def _check_rights(self) -> None:
        """Raise AccessRefusedError unless this user may change ACLs: it removes one that is not there.

        librdkafka 2.16 tells somebody who may not read ACLs that there are none, and aborts the process of somebody who
        may not read users. Who may change them may read them.
        """
        self.remove_acls([_NOBODYS], "users and ACLs cannot be read")

    def fetch_acls(self) -> list[Acl]:
        # None is any name. The library takes it, and its types do not know.
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,  # type: ignore[arg-type]
            ResourcePatternType.ANY,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        found: list[AclBinding] = _result(
            self._client.describe_acls(everything, request_timeout=_TIMEOUT_S), "ACLs cannot be read"
        )
        return [_from_binding(each) for each in found if each.principal.startswith(_USER)]

    def fetch_users(self, names: Iterable[str]) -> dict[str, bool]:
        """Tell for each user whether it has a password for SCRAM-SHA-512."""
        answers = self._client.describe_user_scram_credentials(list(names), request_timeout=_TIMEOUT_S)
        assert isinstance(answers, dict)  # as it is for named users
        return {name: _has_password(answer) for name, answer in answers.items()}

    def find_open_listeners(self) -> list[str]:
        """Return a sentence for each listener of a broker that lets clients in without a login."""
        try:
            brokers = self._client.list_topics(timeout=_TIMEOUT_S).brokers
        except KafkaException as error:
            raise _refusal("brokers cannot be listed", error) from error
        asked = [ConfigResource(ConfigResource.Type.BROKER, str(broker)) for broker in sorted(brokers)]
        answers = self._client.describe_configs(asked, request_timeout=_TIMEOUT_S)
        return [
            f"broker {resource.name} lets clients in without a login at {listener}"
            for resource, answer in answers.items()
            for listener in open_listeners(
                {name: entry.value for name, entry in _result(answer, "listeners cannot be read").items()}
            )
        ]

    def set_passwords(self, passwords: Mapping[str, str]) -> None:
        """Create or change users, all in one request. Open connections stay; new ones need the new password."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
        changes: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, info, password.encode())
            for name, password in passwords.items()
        ]
        answers = self._client.alter_user_scram_credentials(changes, request_timeout=_TIMEOUT_S)
        for name, answer in answers.items():
            _result(answer, f"the password of {name} cannot be set")

    def create_acls(self, acls: Iterable[Acl]) -> None:
        """Create ACLs, all in one request. Those that exist stay."""
        bindings = [_to_binding(each) for each in acls]
        answers = self._client.create_acls(bindings) if bindings else {}
        for answer in answers.values():
            _result(answer, "ACLs cannot be created")

    def remove_acls(self, acls: Iterable[Acl], refusal: str = "ACLs cannot be removed") -> None:
        filters = [
            AclBindingFilter(
                each.restype,
                each.name,
                each.resource_pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
            # librdkafka knows no name for some kinds of resources, such as delegation tokens.
            for each in map(_to_binding, (acl for acl in acls if acl.resource != "unknown"))
        ]
        answers = self._client.delete_acls(filters) if filters else {}
        for answer in answers.values():
            _result(answer, refusal)


def answers_without_login(settings: KafkaSettings) -> bool:
    """Tell whether the brokers answer a client that does not authenticate."""
    protocol = settings.client.get("security.protocol", "plaintext").lower().removeprefix("sasl_")
    login = {name for name in settings.client if name.startswith("sasl.")}
    anonymous = {name: value for name, value in settings.client.items() if name not in login}
    client = clients.admin(
        replace(settings, client={**anonymous, "security.protocol": protocol}), "anonymous"
    )
    try:
        client.list_topics(timeout=_ANONYMOUS_TIMEOUT_S)
    except KafkaException:
        return False
    return True


def _to_binding(acl: Acl) -> AclBinding:
    resource = _CLUSTER if acl.resource == "cluster" else acl.resource
    return AclBinding(
        ResourceType[resource.upper()],
        acl.name,
        ResourcePatternType[acl.pattern.upper()],
        f"{_USER}{acl.principal}",
        acl.host,
        AclOperation[acl.operation.upper()],
        AclPermissionType[acl.permission.upper()],
    )


def _from_binding(binding: AclBinding) -> Acl:
    resource = _name(binding.restype)
    return Acl(
        principal=binding.principal.removeprefix(_USER),
        resource="cluster" if resource == _CLUSTER else resource,
        name=binding.name,
        operation=_name(binding.operation),
        pattern=_name(binding.resource_pattern_type),
        permission=_name(binding.permission_type),
        host=binding.host,
    )


def _name(kind: Enum | str | int) -> str:
    """Return the name of a kind. The library also takes names and numbers, and always answers with enums."""
    assert isinstance(kind, Enum)
    return kind.name.lower()


def _has_password(answer: "Future[object]") -> bool:
    try:
        found = answer.result(_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.RESOURCE_NOT_FOUND:
            return False
        raise _refusal("users cannot be read", error) from error
    except TimeoutError as error:
        raise KafkaUnavailableError("users cannot be read: no answer") from error
    infos: Sequence[ScramCredentialInfo] = found.scram_credential_infos  # type: ignore[attr-defined]
    return any(info.mechanism == ScramMechanism.SCRAM_SHA_512 for info in infos)


def _result(answer: "Future[_T]", what: str) -> _T:
    try:
        return answer.result(_TIMEOUT_S)
    except KafkaException as error:
        raise _refusal(what, error) from error
    except TimeoutError as error:
        raise KafkaUnavailableError(f"{what}: no answer within {_TIMEOUT_S:g} s") from error


def _refusal(what: str, error: KafkaException) -> Exception:
    reason: KafkaError = error.args[0]
    if reason.code() == KafkaError.SECURITY_DISABLED:
        return AccessRefusedError(
            f"{what}: the cluster has no authorizer, so every client may do everything. Set authorizer.class.name."
        )
    if reason.code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
        # The brokers' own text can be a dump of the request.
        return AccessRefusedError(f"{what}: {KafkaError(reason.code()).str()}; log in as an admin")
    if reason.retriable() or reason.code() in _TRANSIENT:
        return KafkaUnavailableError(f"{what}: {reason.str()}")
    return AccessRefusedError(f"{what}: {reason.str()}")


def with_login(settings: KafkaSettings, login: Mapping[str, str]) -> KafkaSettings:
    """Return the same settings for a client that logs in as somebody else."""
    return replace(settings, client={**settings.client, **login})
