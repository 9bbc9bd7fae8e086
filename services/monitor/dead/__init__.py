"""Records that nobody could process and deliveries that used up their tries: looked into and replayed."""
