"""How an application is doing: payments, deliveries and its endpoint at a glance."""
