"""docs/security.md lists exactly what each Kafka principal may do."""

import re
from collections.abc import Collection

from shared.domain.kafka_principals import ALL_PRINCIPALS
from shared.domain.topics import ALL_TOPICS, WEBHOOKS_DELAY
from shared.platform.kafka.topic_definition import Topic
from tests.readme.documents import ROOT, Document

_NAME = re.compile(r"`([^`]+)`")
_DELAY = {topic.name for topic in WEBHOOKS_DELAY}


def _topics(cell: str) -> set[str]:
    """Return the topics that a cell names. `webhooks.delay.*` are all eight."""
    found = set(_NAME.findall(cell))
    if "every topic that is consumed" in cell:
        found |= {topic.name for topic in ALL_TOPICS if topic.group}
    elif "every topic" in cell:
        found |= {topic.name for topic in ALL_TOPICS}
    return (found | _DELAY) - {"webhooks.delay.*"} if "webhooks.delay.*" in found else found


def _names(topics: Collection[Topic]) -> set[str]:
    return {topic.name for topic in topics}


def test_table_of_principals_is_the_declaration() -> None:
    rows = {
        row[0].strip("` "): row
        for row in Document(ROOT / "docs" / "security.md").rows()
        if "`mizan-" in row[0]
    }
    assert rows.keys() == {principal.name for principal in ALL_PRINCIPALS}
    for principal in ALL_PRINCIPALS:
        _, _, consumes, produces, reads = rows[principal.name]
        assert _topics(consumes) == _names(principal.consumes), principal.name
        assert _topics(produces) == _names(principal.produces), principal.name
        assert _topics(reads) == _names(principal.reads), principal.name
