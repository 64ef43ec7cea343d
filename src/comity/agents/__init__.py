"""Agents that come with Comity: those that think with a model."""
