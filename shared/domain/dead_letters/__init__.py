"""Dead letters: records that no consumer could process, stored, listed and replayed."""
