"""The overview of an application: payments, deliveries and the health of its endpoint."""
