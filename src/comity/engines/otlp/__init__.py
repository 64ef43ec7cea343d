"""Spans to and from OpenTelemetry, over HTTP."""
