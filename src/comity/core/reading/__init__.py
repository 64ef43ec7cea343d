"""What people look at, as values: rows, filters and pages, the same on every engine."""

from comity.core.reading.calls import AuditFilter as AuditFilter
from comity.core.reading.calls import Bucket as Bucket
from comity.core.reading.calls import CallFilter as CallFilter
from comity.core.reading.calls import CallRow as CallRow
from comity.core.reading.calls import Edge as Edge
from comity.core.reading.calls import Traffic as Traffic
from comity.core.reading.page import Page as Page
from comity.core.reading.page import read_cursor as read_cursor
from comity.core.reading.page import write_cursor as write_cursor
