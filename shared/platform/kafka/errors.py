"""What can go wrong with Kafka, by what to do about it. Pure."""


class KafkaUnavailableError(Exception):
    """Kafka cannot be reached, or did not confirm in time; the same call may work later."""


class UnreadableMessageError(Exception):
    """A record's value is no message we know; trying again will not help."""
