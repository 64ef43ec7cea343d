"""Doors for requests from outside this process."""
