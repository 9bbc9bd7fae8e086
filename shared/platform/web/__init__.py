"""What every service answers over HTTP in the same way: errors, request ids, health and metrics."""
