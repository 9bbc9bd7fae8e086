"""What a process refuses to start with if MIZAN_ENV=production: development settings, known secrets, demo data."""
