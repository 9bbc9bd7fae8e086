"""An application's webhook deliveries: the list, each delivery with its tries, and resends."""
