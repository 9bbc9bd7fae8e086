"""The operators' command line, `bin/mizan`."""
