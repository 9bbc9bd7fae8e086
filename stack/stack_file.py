"""stack.json: the addresses and process ids of a stack that is ready, for programs outside it."""

import json
from collections.abc import Mapping
from typing import Any

from shared.platform.private_files import write_private
from stack.demo import Demo
from stack.options import Options


class StackFile:
    """Exists exactly while the stack is ready. It holds passwords, so only its owner may read it."""

    def __init__(self, options: Options) -> None:
        self.path = options.directory / "stack.json"
        self._replication = (
            {} if options.kafka_bootstrap_servers else {"kafka_replication_factor": options.brokers}
        )

    def write(self, facts: Mapping[str, str], pids: Mapping[str, int], demo: Demo) -> None:
        content: dict[str, Any] = {**facts, **self._replication, "pids": dict(pids), "demo": dict(demo)}
        write_private(self.path, json.dumps(content, indent=2) + "\n")

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
