"""The verifier: asks providers for the outcome of attempts that are still unknown."""
