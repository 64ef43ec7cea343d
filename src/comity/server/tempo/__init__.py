"""Tempo's read API over the spans of a node, as Grafana's data source asks it: shapes, parameters, tags and routes."""
