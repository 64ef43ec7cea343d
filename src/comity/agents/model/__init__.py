"""Agents that think with a language model, and the models of real providers, imported when the first one is asked for."""
