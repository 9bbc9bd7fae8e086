"""Payment attempts that need an operator: undecided ones and duplicates."""
