"""`make bench`: figures of one run on one machine. Compare them within a run, never across machines."""
