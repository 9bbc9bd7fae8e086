"""What a process refuses to start with if MIZAN_ENV=production: development settings, known secrets, unencrypted
connections, demo data."""
