"""Who and what the demo is: made by `mizan demo` for a first look, refused in production."""

from typing import Final

MERCHANT: Final = "Demo"
APPLICATION: Final = "Demo shop"
OWNER: Final = "owner@demo.example"
OPERATOR: Final = "operator@demo.example"
