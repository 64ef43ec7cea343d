"""Handing work off and receiving it, with ContextCore's calls."""
