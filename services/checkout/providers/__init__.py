"""Payment providers: one interface, an implementation for each provider, and the routes that providers call."""
