"""What a proof that was cut off may have left in the daemon: containers, networks and volumes of its projects."""

from tests.compose.surroundings import run

PREFIX = "mizan-proof-"


def remove_leftovers() -> list[str]:
    """Of all projects of proofs; returns what was removed."""
    containers = _named("ps", "--all", "--format", "{{.Names}}")
    networks = _named("network", "ls", "--format", "{{.Name}}")
    volumes = _named("volume", "ls", "--format", "{{.Name}}")
    for kind, names in (("container", containers), ("network", networks), ("volume", volumes)):
        if names:
            force = [] if kind == "network" else ["--force"]
            run("docker", kind, "rm", *force, *names)
    return [*containers, *networks, *volumes]


def _named(*command: str) -> list[str]:
    return [name for name in run("docker", *command).split() if PREFIX in name]
