"""What agents found out, and its five views."""
