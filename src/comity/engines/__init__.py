"""What carries and stores: the embedded engine (asyncio and SQLite) and its memory twin."""
