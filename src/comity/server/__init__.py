"""The HTTP server of a node: every door leads to the one call path."""
