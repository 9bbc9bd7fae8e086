"""What the pages of those who sign in have in common: how they look, speak and know who is there."""
