"""stack.json: the addresses and process ids of a stack that is ready, for programs outside it."""

import json
import os
from collections.abc import Mapping
from typing import Any

from stack.options import Options


class StackFile:
    """Exists exactly while the stack is ready. It holds passwords, so only its owner may read it."""

    def __init__(self, options: Options) -> None:
        self.path = options.directory / "stack.json"
        self._replication = (
            {} if options.kafka_bootstrap_servers else {"kafka_replication_factor": options.brokers}
        )

    def write(self, addresses: Mapping[str, str], pids: Mapping[str, int]) -> None:
        content: dict[str, Any] = {**addresses, **self._replication, "pids": dict(pids), "demo": {}}
        new = self.path.with_name("stack.json.new")
        new.unlink(missing_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123 - born private
            json.dump(content, file, indent=2)
            file.write("\n")
        new.replace(self.path)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
