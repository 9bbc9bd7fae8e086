"""A small shop that takes payments through Mizan, written as an example to copy. Start with its README.md."""
