"""A small shop that takes payments through Mizan, written as an example to copy. Start with its README.md.

The sections (§) in its comments are those of the specification of Mizan's API.
"""
