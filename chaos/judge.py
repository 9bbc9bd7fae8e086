"""The judge of `make chaos`."""
