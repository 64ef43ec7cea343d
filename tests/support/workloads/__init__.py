"""What simulated users and agents do."""
