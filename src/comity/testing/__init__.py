"""For tests of agents: virtual time, so that a test of a 30 s timeout takes milliseconds."""

from comity.testing.virtual import VirtualClock, run_virtual

__all__ = ["VirtualClock", "run_virtual"]
