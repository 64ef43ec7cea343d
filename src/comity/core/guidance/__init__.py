"""What people want of agents: the document, its scopes, its prompt."""
