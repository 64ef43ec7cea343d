"""The rules of a handoff: its machine, its queue, its holder."""
