"""What the documents say is true: their commands run, their links lead somewhere, their tables fit the code."""
