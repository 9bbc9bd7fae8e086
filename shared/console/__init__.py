"""The UI kit for signed-in people: templates, styles, languages, the sign-in guard, account pages and shared labels."""
