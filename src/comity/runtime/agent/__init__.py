"""Agents in memory: activations, threads, workers, breakers."""
