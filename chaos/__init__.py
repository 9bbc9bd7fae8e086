"""`make chaos`: a real stack under load and faults, and a judge that knows only what clients saw."""
