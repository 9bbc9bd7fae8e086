"""An application's webhook deliveries: the list, one with its tries, resends."""
