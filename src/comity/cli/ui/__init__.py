"""How commands read arguments and show results."""
