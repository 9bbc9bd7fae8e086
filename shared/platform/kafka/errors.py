"""Errors of Kafka, by what to do about them. Pure."""


class KafkaUnavailableError(Exception):
    """Kafka cannot be reached, or did not confirm in time; the same call may work later."""


class UnreadableMessageError(Exception):
    """A record's value is not a known message; a retry will not help."""
