"""What every engine must do, as test suites: subclass each in a test file of the engine, and pytest runs them.

`docs/engines.md` says which ports they are for. They need `pytest`.
"""

from comity.testing.contracts.cluster import LeasesContract, TransportContract
from comity.testing.contracts.handoffs import HandoffContract
from comity.testing.contracts.journal import JournalContract

__all__ = ["HandoffContract", "JournalContract", "LeasesContract", "TransportContract"]
