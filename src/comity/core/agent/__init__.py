"""What an agent declares, and the machines of one: activation, mailbox, breaker."""
