"""Handoffs on a node: creating them, receiving them, and waiting for their results."""
