"""Spans, their wire forms, their names, and TraceQL."""
