"""The sandbox: a simulated bank and two simulated wallets behind HTTP, with a ledger. For test applications."""
