"""The judge of `make chaos`: decides from a history alone whether the spec held. It knows nothing of the product.

`run.py` indexes a history. `clock.py`, `faults.py`, `applications.py` and `changes.py` say what was possible when,
`try_matching.py` which request was which try. The rules are in `intents.py`, `states.py`, `charges.py`, `webhooks.py`,
`deliveries.py` and `settling.py`; `verdict.py` runs them.
"""
