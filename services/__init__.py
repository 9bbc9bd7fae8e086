"""The services of Mizan: one package each, none imports another."""
