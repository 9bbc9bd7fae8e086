"""The scheduled jobs, one module each."""
