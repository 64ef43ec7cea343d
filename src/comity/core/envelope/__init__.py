"""The canonical `Request` and `Reply`, and their codec."""
