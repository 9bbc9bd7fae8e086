"""What ended badly: records that nobody could process and deliveries that used up their tries; seen, and replayed."""
