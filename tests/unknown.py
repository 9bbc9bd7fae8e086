"""An id that nothing has."""

UNKNOWN_ID = "0b5a3f6e-7c41-4d1e-9a52-6e0f8d2c9b17"
"""The same in each process: tests are named after their parameters, and all workers must know them by one name."""
