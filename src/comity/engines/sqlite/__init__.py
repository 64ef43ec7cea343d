"""The embedded engine: one store file, one writer thread, group commit."""
