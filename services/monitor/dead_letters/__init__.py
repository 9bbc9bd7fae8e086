"""Records that no consumer could process: shown to operators and replayed."""
