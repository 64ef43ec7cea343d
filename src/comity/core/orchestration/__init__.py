"""What an orchestrator decides: intents, parts of a request, aggregation of replies, conflicts between them."""
