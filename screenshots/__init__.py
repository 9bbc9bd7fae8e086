"""The screenshots of the README, taken by `make screenshots` on a new stack."""
