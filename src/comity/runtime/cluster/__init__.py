"""Several nodes as one: who holds which address, calls carried to where their agent is, budgets and probes across nodes."""
