"""The five protocols, each a pair of pure functions to and from the canonical envelope.

`DIALECTS` is the table of them by name; `convert` goes from one to another and says what is lost on the way.
"""

from comity.dialects.convert import DIALECTS, Conversion, Dialect, Kind, convert, dialect, dialect_of

__all__ = ["DIALECTS", "Conversion", "Dialect", "Kind", "convert", "dialect", "dialect_of"]
