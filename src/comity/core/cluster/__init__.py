"""What nodes of a cluster agree on: leases, messages, deadlocks across nodes."""
