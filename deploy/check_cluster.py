#!/usr/bin/env python3
"""Refuses the profile `cluster` without its settings: the brokers would not know each other."""

import os
import sys

EXPECTED_COUNTS = {"KAFKA_VOTERS": 3, "KAFKA_BOOTSTRAP_SERVERS": 3}


def main() -> None:
    given = {name: os.environ.get(name, "") for name in (*EXPECTED_COUNTS, "KAFKA_REPLICATION_FACTOR")}  # noqa: TID251
    is_complete = all(len(given[name].split(",")) == count for name, count in EXPECTED_COUNTS.items())
    if not is_complete or given["KAFKA_REPLICATION_FACTOR"] != "3":
        sys.exit(
            "The profile `cluster` needs more settings, because the first broker has to know the others."
            " Start with: docker compose --env-file deploy/cluster.env up"
        )


if __name__ == "__main__":
    main()
