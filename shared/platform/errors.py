"""The base class of all refusals of a request that a person can correct."""


class RefusedError(Exception):
    """It cannot be done as asked. The text is for the person who asked, and holds no secret."""
