#!/usr/bin/env python3
"""Refuses the profile `cluster` where only the profile was turned on: the brokers would not know of each other."""

import os
import sys

THREE = {"KAFKA_VOTERS": 3, "KAFKA_BOOTSTRAP_SERVERS": 3}


def main() -> None:
    given = {name: os.environ.get(name, "") for name in (*THREE, "KAFKA_REPLICATION_FACTOR")}  # noqa: TID251
    is_whole = all(len(given[name].split(",")) == count for name, count in THREE.items())
    if not is_whole or given["KAFKA_REPLICATION_FACTOR"] != "3":
        sys.exit(
            "The profile `cluster` needs settings that a profile cannot make, for the first broker has to know of the "
            "others. Start with: docker compose --env-file deploy/cluster.env up"
        )


if __name__ == "__main__":
    main()
