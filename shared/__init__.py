"""What two or more services need, in three layers: console, domain, platform. Imports go down only."""

VERSION = "1.0.0"
"""Of the package, the API's document and the newest release in CHANGELOG.md."""
