"""Handoffs on a node, and the calls ContextCore makes of them: who hands off, who receives, in async and in sync."""
