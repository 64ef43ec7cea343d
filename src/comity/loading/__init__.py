"""Agents from outside the program: registry files and modules."""
