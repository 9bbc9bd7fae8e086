"""What a principal may do in Kafka, as ACLs, and how the ACLs of a cluster differ from that. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.platform.kafka.topic_definition import Topic

SCRAM_MECHANISM = "SCRAM-SHA-512"
CLUSTER_NAME = "kafka-cluster"
"""The name that Kafka gives to the cluster as a resource."""
READER_GROUPS = ("backlog", "dead-reader", "watching")
"""Clients that read without joining a group have one of these names. Kafka wants it to be known to the reader."""
EVERYBODY = frozenset({"*", "ANONYMOUS"})
"""Principals that a client is without a password: any user, and a user who did not authenticate."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A user of the cluster. It may do what is listed here, and nothing else."""

    name: str
    consumes: tuple[Topic, ...] = ()
    """As a member of the topic's consumer group."""
    produces: tuple[Topic, ...] = ()
    reads: tuple[Topic, ...] = ()
    """Without being a member of a group."""
    inspects_groups: tuple[str, ...] = ()
    """Whose members and committed offsets it looks at."""
    checks: tuple[Topic, ...] = ()
    """Whose configuration it compares with the definition."""
    is_admin: bool = False
    """Whether it creates topics, users and ACLs."""


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One rule of the cluster: `principal` may do `operation` with the resource. Names are those that Kafka uses."""

    principal: str
    """Without the `User:` before it."""
    resource: str
    """topic, group, cluster and so on."""
    name: str
    operation: str
    pattern: str = "literal"
    permission: str = "allow"
    host: str = "*"

    def __str__(self) -> str:
        verb = "may" if self.permission == "allow" else "must not"
        what = self.resource if self.resource == "cluster" else f"{self.resource} {self.name}"
        prefixed = " and all that start like it" if self.pattern == "prefixed" else ""
        host = "" if self.host == "*" else f" from {self.host}"
        return f"{self.principal} {verb} {self.operation} {what}{prefixed}{host}"

    def covers(self, resource: str, name: str) -> bool:
        """Tell whether it is about this resource, also by a pattern."""
        if self.resource not in (resource, "any"):
            return False
        if self.pattern == "prefixed":
            return name.startswith(self.name)
        return self.name in (name, "*")


def acls_of(principal: Principal, prefix: str) -> frozenset[Acl]:
    """Return the ACLs that the principal needs if topics and groups have this prefix.

    Reading and writing a topic include describing it, and joining a group includes describing that.
    """
    return frozenset(
        Acl(principal.name, resource, name if resource == "cluster" else f"{prefix}{name}", operation)
        for resource, name, operation in _rights(principal)
    )


def _rights(principal: Principal) -> Iterator[tuple[str, str, str]]:
    readable = {topic.name for topic in (*principal.consumes, *principal.reads)}
    yield from (("topic", name, "read") for name in readable)
    yield from (("topic", topic.name, "write") for topic in principal.produces)
    yield from (("group", topic.group, "read") for topic in principal.consumes if topic.group)
    readers = READER_GROUPS if principal.reads else ()
    yield from (("group", group, "describe") for group in (*principal.inspects_groups, *readers))
    written = {topic.name for topic in principal.produces}
    for topic in principal.checks:
        yield "topic", topic.name, "describe_configs"
        if topic.name not in readable | written:
            yield "topic", topic.name, "describe"
        if principal.is_admin:
            yield "topic", topic.name, "create"
    if principal.is_admin:
        # Users and ACLs are part of the cluster, and so are the listeners of its brokers.
        operations = ("alter", "describe", "describe_configs")
        yield from (("cluster", CLUSTER_NAME, operation) for operation in operations)


@dataclass(frozen=True, slots=True)
class AccessDifferences:
    """How a cluster differs from the declaration."""

    missing: tuple[Acl, ...] = ()
    too_wide: tuple[Acl, ...] = ()
    """What a principal of ours may do and does not need."""
    foreign: tuple[Acl, ...] = ()
    """What everybody may do with our topics and groups, or what is denied to our principals: an operator decides."""
    missing_users: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.too_wide or self.foreign or self.missing_users)

    def lines(self) -> list[str]:
        """Return each difference as a sentence."""
        return [
            *(f"missing: the user {name} with {SCRAM_MECHANISM}" for name in self.missing_users),
            *(f"missing: {acl}" for acl in self.missing),
            *(f"too wide: {acl}" for acl in self.too_wide),
            *(f"too wide: everybody {str(acl).partition(' ')[2]}" for acl in self._for_everybody()),
            *(f"denied: {acl}" for acl in self.foreign if acl.permission != "allow"),
        ]

    def _for_everybody(self) -> Iterator[Acl]:
        return (acl for acl in self.foreign if acl.permission == "allow")


def compare_access(
    principals: Sequence[Principal],
    prefix: str,
    found: Collection[Acl],
    users: Mapping[str, bool] | None = None,
) -> AccessDifferences:
    """Compare the ACLs of a cluster with what the principals need.

    `users` tells which principals can log in with a password of the cluster; None if users are kept elsewhere. What
    concerns only topics and groups without our prefix belongs to another installation, and is left alone.
    """
    wanted = {acl for principal in principals for acl in acls_of(principal, prefix)}
    names = {principal.name for principal in principals}
    resources = {(acl.resource, acl.name) for acl in wanted}
    about_us = [acl for acl in found if _is_about(acl, prefix, resources)]
    extra = [acl for acl in about_us if acl.principal in names and acl not in wanted]
    return AccessDifferences(
        missing=tuple(sorted(wanted - set(found))),
        too_wide=tuple(sorted(acl for acl in extra if acl.permission == "allow")),
        foreign=tuple(
            sorted(
                acl
                for acl in about_us
                if (acl.principal in EVERYBODY and acl.permission == "allow")
                or (acl.principal in names | EVERYBODY and acl.permission != "allow")
            )
        ),
        missing_users=tuple(sorted(name for name in names if users is not None and not users.get(name))),
    )


def _is_about(acl: Acl, prefix: str, resources: Collection[tuple[str, str]]) -> bool:
    """Tell whether it is about one of our resources, or about a name that only we may use."""
    if acl.resource not in ("topic", "group", "transactional_id"):
        return True
    if any(acl.covers(resource, name) for resource, name in resources):
        return True
    return acl.name.startswith(prefix) or acl.name == "*"


def open_listeners(config: Mapping[str, str | None]) -> list[str]:
    """Return the listeners of a broker with this configuration that let clients in without a login or certificate."""
    pairs = (pair.split(":") for pair in (config.get("listener.security.protocol.map") or "").split(","))
    protocols = {name.strip(): protocol.strip() for name, *rest in pairs for protocol in rest}

    def is_open(listener: str) -> bool:
        name = listener.partition("://")[0]
        protocol = protocols.get(name, name).upper()
        own = config.get(f"listener.name.{name.lower()}.ssl.client.auth")
        asks_certificate = (own or config.get("ssl.client.auth")) == "required"
        return protocol == "PLAINTEXT" or (protocol == "SSL" and not asks_certificate)

    listeners = (listener.strip() for listener in (config.get("listeners") or "").split(","))
    return [listener for listener in listeners if is_open(listener)]


def password_file(principal: str) -> str:
    """Return the name of the file with the password of a principal: kafka_webhooks for mizan-webhooks."""
    return f"kafka_{principal.removeprefix('mizan-').replace('-', '_')}"


def sasl_client(
    name: str, password: str, *, protocol: str = "SASL_PLAINTEXT", mechanism: str = SCRAM_MECHANISM
) -> dict[str, str]:
    """Return the client settings with which a principal logs in."""
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }
