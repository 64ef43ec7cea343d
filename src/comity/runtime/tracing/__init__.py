"""Where the call path leaves what it did for tracing."""
