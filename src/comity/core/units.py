"""How many of one unit of time are in another: times of the clock are in ns, of documents in ms, of timers in s."""

from typing import Final

NS_PER_MS: Final = 1_000_000
MS_PER_S: Final = 1_000
