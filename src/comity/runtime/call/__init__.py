"""One call from its door to its settled reply."""
