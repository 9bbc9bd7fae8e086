"""What the dashboard says in each language, from the catalogues that it has it from itself."""

from tests.catalogue import Catalogue

LANGUAGES = ("ar", "en")
DIRECTIONS = {"ar": "rtl", "en": "ltr"}

say = Catalogue("services.dashboard", "shared.pages").say
