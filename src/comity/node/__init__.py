"""A node: the composition root, and what can be asked of one beside calls."""
