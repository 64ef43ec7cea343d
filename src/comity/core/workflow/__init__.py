"""Workflows, pure: the definition, its checks, mapping, and the planner that turns a history of events into commands."""
