"""The documents are correct: their commands run, their links work, their tables match the code."""
