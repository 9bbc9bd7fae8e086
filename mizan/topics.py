"""`mizan topics`: creates topics, Kafka's users and their ACLs, or verifies what is there; lists all topics."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mizan.command_context import startup_settings
from mizan.output import echo_rows, json_option, other_users_option, timestamp
from shared.domain.kafka_principals import ADMIN, ALL_PRINCIPALS
from shared.domain.topics import ALL_TOPICS
from shared.platform.kafka.access import AccessDifferences, password_file
from shared.platform.kafka.access_setup import AccessAdmin, AccessRefusedError
from shared.platform.kafka.clients import topic_name
from shared.platform.kafka.errors import KafkaUnavailableError
from shared.platform.kafka.inspection.inspector import inspect_topics
from shared.platform.kafka.topic_setup import TopicsDifferError, check_topics, ensure_topics
from shared.platform.settings import KafkaSettings

_SHORTEST_PASSWORD = 16
_ACCESS_RETRY_S = 30


@click.command("topics")
@json_option
@click.option(
    "--passwords",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Create Kafka's users and their ACLs. A directory with their passwords: kafka_webhooks and so on.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Change nothing. Exit with 1 if topics, users or ACLs are missing, or if somebody may do too much.",
)
@other_users_option
def topics_command(*, as_json: bool, passwords: Path | None, verify: bool, other_users: bool) -> None:
    """Create missing topics, and list all. As the user mizan-admin, also set the ACLs of our users.

    Exit code 1 if a topic differs from its definition.
    """
    if passwords and (verify or other_users):
        raise click.UsageError("--passwords changes users; use it without --verify and --other-users.")
    with startup_settings() as settings:
        kafka = settings.kafka
        if verify:
            _verify(kafka, with_users=not other_users)
            return
        try:
            made = ensure_topics(kafka, ALL_TOPICS)
        except TopicsDifferError as error:
            raise click.ClickException(
                f"{error}\nChange them with your Kafka tools, or remove them if nothing in them is needed."
            ) from error
        access = _set_access(kafka, passwords, with_users=not other_users)
        views = inspect_topics(kafka, ALL_TOPICS)
    topics: list[Mapping[str, Any]] = [
        {
            "topic": topic_name(settings.kafka, topic.name),
            "partitions": len(view.partitions),
            "records": view.records,
            "oldest_record": timestamp(view.oldest_at),
            "retention_seconds": int(topic.retention.total_seconds()),
            "made_now": topic_name(settings.kafka, topic.name) in made,
        }
        for topic, view in zip(ALL_TOPICS, views, strict=True)
    ]
    if as_json:
        click.echo(json.dumps({"topics": topics, **({"access": _as_json(access)} if access else {})}))
    else:
        echo_rows(_for_people(topics))
        for line in _changes(access) if access else ():
            click.echo(line)
    for line in _left_open(access) if access else ():
        click.echo(line, err=True)


def _set_access(
    kafka: KafkaSettings, passwords: Path | None, *, with_users: bool
) -> AccessDifferences | None:
    """Set passwords and ACLs; return what differed before. None without passwords and if we are not the admin."""
    if passwords is None and kafka.client.get("sasl.username") != ADMIN.name:
        return None
    admin = AccessAdmin(kafka)
    # Each step can be repeated. While a cluster starts, a broker may not answer the first time.
    retry = Retrying(
        retry=retry_if_exception_type(KafkaUnavailableError),
        stop=stop_after_delay(_ACCESS_RETRY_S),
        wait=wait_fixed(1),
        reraise=True,
    )
    try:
        if passwords is not None:
            retry(admin.set_passwords, _read_passwords(passwords))
        return retry(admin.apply, ALL_PRINCIPALS, with_users=with_users)
    except AccessRefusedError as error:
        raise click.ClickException(str(error)) from error


def _verify(kafka: KafkaSettings, *, with_users: bool) -> None:
    lines: list[str] = []
    try:
        check_topics(kafka, ALL_TOPICS)
    except TopicsDifferError as error:
        lines += error.differences
    try:
        lines += AccessAdmin(kafka).compare(ALL_PRINCIPALS, with_users=with_users).lines()
    except AccessRefusedError as error:
        raise click.ClickException("\n".join([*lines, str(error)])) from error
    if lines:
        remedy = (
            "`mizan topics` as mizan-admin creates what is missing, and removes what our users need not do."
        )
        raise click.ClickException("\n".join([*lines, remedy]))
    click.echo("topics, users and ACLs are as they should be")


def _read_passwords(directory: Path) -> dict[str, str]:
    """Return the passwords of the principals that have a file. Raises ClickException for one that is too short."""
    known = {each.name: directory / password_file(each.name) for each in ALL_PRINCIPALS}
    files = {name: file for name, file in known.items() if file.exists()}
    if not files:
        names = ", ".join(file.name for file in known.values())
        raise click.ClickException(f"{directory} has no file with one of these names: {names}.")
    passwords = {name: file.read_text().strip() for name, file in files.items()}
    short = [str(files[name]) for name, password in passwords.items() if len(password) < _SHORTEST_PASSWORD]
    if short:
        raise click.ClickException(
            f"{', '.join(short)}: a password must have at least {_SHORTEST_PASSWORD} characters."
        )
    return passwords


def _changes(before: AccessDifferences) -> list[str]:
    created = [f"ACLs created: {len(before.missing)}"] if before.missing else []
    return [*created, *(f"ACL removed, it was too wide: {acl}" for acl in before.too_wide)]


def _left_open(before: AccessDifferences) -> list[str]:
    """Return what the command has not changed: an operator has to."""
    return AccessDifferences(foreign=before.foreign, missing_users=before.missing_users).lines()


def _as_json(before: AccessDifferences) -> dict[str, Any]:
    return {
        "acls_created": [str(acl) for acl in before.missing],
        "acls_removed": [str(acl) for acl in before.too_wide],
        "left_open": _left_open(before),
    }


def _for_people(topics: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [
        {
            "topic": topic["topic"],
            "partitions": topic["partitions"],
            "records": f"{topic['records']:,}",
            "oldest record": topic["oldest_record"],
            "retention": f"{topic['retention_seconds'] // 86400} days",
            "": "created now" if topic["made_now"] else "",
        }
        for topic in topics
    ]
