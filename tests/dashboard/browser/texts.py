"""The texts of the dashboard in each language, from its catalogues."""

from tests.catalogue import DIRECTIONS, LANGUAGES, Catalogue

__all__ = ["CATALOGUE", "DIRECTIONS", "LANGUAGES"]

CATALOGUE = Catalogue("services.dashboard", "shared.console")
