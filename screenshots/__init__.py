"""The pictures of the README: taken of a stack of its own by `make screenshots`."""
