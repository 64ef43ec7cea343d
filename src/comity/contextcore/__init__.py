"""The client calls of the ContextCore protocol, in its words."""
