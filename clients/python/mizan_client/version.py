"""The version of this package. It is the version of the Mizan release that it comes with."""

VERSION = "1.0.0"
