"""The rules of a call: its machine, admission, limits, budgets and waits."""
