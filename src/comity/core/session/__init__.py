"""A session, its conversation, and what is remembered of a user."""
