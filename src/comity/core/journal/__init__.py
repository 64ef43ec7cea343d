"""What is written down: records, terms of an append, the audit chain, retention."""
