"""Emitting and querying insights with the calls of the ContextCore protocol; see `comity.engines.insights`."""

from comity.engines.insights import InsightEmitter, InsightQuerier

__all__ = ["InsightEmitter", "InsightQuerier"]
