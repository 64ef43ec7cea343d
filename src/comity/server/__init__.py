"""The HTTP server of a node: doors that lead to its one call path, and what people read of it.

The server decides nothing. It reads requests, finds out who sends them, bounds them, asks the node, and writes the answer.
"""
