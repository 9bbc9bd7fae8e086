"""The base class of errors that a person can correct."""


class RefusedError(Exception):
    """A request is refused. The text is for the person who made it, and holds no secret."""
