"""The API for merchants' servers: create and retrieve payment intents (spec §2, §4, §5, §7, §8)."""
