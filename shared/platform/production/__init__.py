"""What MIZAN_ENV=production refuses to start with: settings of development, known secrets, demo data."""
