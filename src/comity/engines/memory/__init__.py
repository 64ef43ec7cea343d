"""The engine of a node without a store: everything but durability."""
