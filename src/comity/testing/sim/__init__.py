"""The simulator: worlds made from a seed, with faults and invariants."""
