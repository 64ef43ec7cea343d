"""The interfaces (protocols) that the runtime needs. Engines implement them; `comity.testing` has faulty variants.

Timers and tasks come from the running asyncio event loop, which a simulation replaces as a whole; every other source of
nondeterminism is a port.
"""

from comity.ports.cipher import Cipher
from comity.ports.clock import Clock, Ids
from comity.ports.cluster import Leases, Noticed, Receive, Transport
from comity.ports.engine import Engine
from comity.ports.guidance import GuidanceSource
from comity.ports.handoffs import HandoffJournal, Handoffs
from comity.ports.journal import Journal, Then
from comity.ports.model import Model
from comity.ports.reader import Reader
from comity.ports.spans import KeptSpans, SpanDrain, SpanExporter, SpanFile, SpanSink, SpanSource
from comity.ports.threads import Threads

__all__ = [
    "Cipher",
    "Clock",
    "Engine",
    "GuidanceSource",
    "HandoffJournal",
    "Handoffs",
    "Ids",
    "Journal",
    "KeptSpans",
    "Leases",
    "Model",
    "Noticed",
    "Reader",
    "Receive",
    "SpanDrain",
    "SpanExporter",
    "SpanFile",
    "SpanSink",
    "SpanSource",
    "Then",
    "Threads",
    "Transport",
]
