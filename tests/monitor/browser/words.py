"""The texts of the monitor in each language, from its own catalogues."""

from tests.catalogue import Catalogue

CATALOGUE = Catalogue("services.monitor", "shared.console")
