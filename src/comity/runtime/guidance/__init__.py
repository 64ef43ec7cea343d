"""Guidance in force on a node."""
