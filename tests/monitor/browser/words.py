"""What the monitor says in each language, from the catalogues that it has it from itself."""

from tests.catalogue import Catalogue

CATALOGUE = Catalogue("services.monitor", "shared.console")
