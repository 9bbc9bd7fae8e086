"""How people write a card number: what the card form accepts between digits, and what redaction therefore finds. Pure.

A number that the form accepts and redaction does not find would end in a log.
"""

LENGTHS = range(12, 20)

SEPARATORS = (
    # Spaces and line ends; dots, slashes and dashes that look alike.
    r"\s./\-\u2010-\u2014\u2212"
    # The soft hyphen, and the invisible marks that copying from Arabic text leaves behind.
    r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    # Signs that stand before a number in Arabic and Syriac, and interlinear marks.
    r"\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufff9-\ufffb"
)
"""The characters that may stand between two digits, as the inside of a regular expression's brackets."""

MAX_SEPARATORS = 8
"""How many of them may stand between two digits: a dash with a space and some marks on both sides."""
