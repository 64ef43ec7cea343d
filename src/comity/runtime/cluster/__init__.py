"""Several nodes on one store: leases of addresses, calls sent to the node that holds their agent, budgets across nodes."""
