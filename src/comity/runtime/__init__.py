"""Doing: the node and the one call path. Deciding is in `comity.core`."""
