"""Sessions in memory, and personal data in them."""
