"""Guidance in a file, and noticing that the file changed."""
