"""The span store: spans in SQLite, found by TraceQL."""
