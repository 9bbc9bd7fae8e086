"""What the dashboard says in each language, from the catalogues that it has it from itself."""

from tests.catalogue import DIRECTIONS, LANGUAGES, Catalogue

__all__ = ["CATALOGUE", "DIRECTIONS", "LANGUAGES"]

CATALOGUE = Catalogue("services.dashboard", "shared.console")
