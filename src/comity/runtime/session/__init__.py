"""Sessions under way, and personal data in them."""
