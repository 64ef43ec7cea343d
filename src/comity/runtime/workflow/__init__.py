"""Runs of workflows: each is one tree of calls whose root is driven by the planner."""
