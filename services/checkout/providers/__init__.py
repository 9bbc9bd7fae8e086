"""Those who take the money: one port, an adapter for each of them."""
