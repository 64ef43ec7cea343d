"""A small model provider on a real socket."""
