"""Language models: those of real providers, imported when the first one is asked for."""
