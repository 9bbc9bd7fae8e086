"""The search for payments of all merchants."""
