"""What a real Tempo answered about 900 spans, recorded: `tests/support/tempo/README.md` says how."""

import functools
import gzip
import json
from pathlib import Path
from typing import Any

from comity.core.tracing.span import Span, decode_spans

FOLDER = Path(__file__).parent / "tempo"


def _read(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / name).read_bytes()))


@functools.cache
def recorded_answers() -> dict[str, Any]:
    """Return the recorded answers, with the time range they are about. Not to be changed."""
    return _read("answers.json.gz")


@functools.cache
def recorded_spans() -> tuple[Span, ...]:
    """Return the spans that Tempo was asked about."""
    return tuple(decode_spans(_read("spans.json.gz")["otlp"]))
