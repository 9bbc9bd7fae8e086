"""A small shop that takes payments through Mizan, made to be read and copied. README.md beside this file is the way in.

The sections (§) named in its comments are those of the specification of Mizan's API.
"""
