"""The monitor: shows operators the health of the system and lets them act."""
