"""A node: the composition root, and its methods besides calls."""
