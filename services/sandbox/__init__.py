"""A stand-in bank and two wallets behind HTTP, with a ledger of its own. Never in production."""
