"""One document from outside: packed, checked, bounded."""
