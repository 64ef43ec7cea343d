"""Nothing a dialect can say is lost, in either direction: the property that makes a dialect one."""

from __future__ import annotations

import dialect_documents as documents
import dialect_strategies as generated
import pytest
from dialect_strategies import NOW_MS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json

from comity.dialects import DIALECTS, call_agent

pytestmark = pytest.mark.hypothesis  # the properties are inside the tests
# Each example holds several envelopes: what an example costs beside them would be half of the time. `make fuzz` tries 140,000.
ENVELOPES, EXAMPLES = 8, max(24, settings().max_examples)
UNSAID = {"user_id": "u-1", "request_id": "r-1", "capability": "message"}

often = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def arguments(dialect, request=None):
    beside = {name: value for name, value in UNSAID.items() if name in dialect.asks}
    if dialect.name == "call_agent" and request is not None:
        beside["call_context"] = call_agent.encode_call_context(request)
    return beside


def check(strategy, comes_back):
    """Run one property over its share of the envelopes, and prove that it got them."""
    seen = []

    def all_come_back(items):
        for item in items:
            comes_back(item)
        seen.extend(items)

    often(given(st.tuples(*[strategy] * ENVELOPES))(all_come_back))()
    assert len(seen) >= ENVELOPES * EXAMPLES


def test_thousands_of_envelopes_are_generated():
    tables = (generated.REQUESTS, generated.REPLIES, documents.REQUESTS, documents.REPLIES)
    assert all(table.keys() <= DIALECTS.keys() for table in tables)
    assert ENVELOPES * EXAMPLES * sum(map(len, tables)) >= 3_000


@pytest.mark.parametrize("name", generated.REQUESTS)
def test_a_request_comes_back_from_every_dialect_as_it_was(name):
    dialect = DIALECTS[name]

    def comes_back(request):
        document = to_json(dialect.encode_request(request, now_ms=NOW_MS))
        assert dialect.decode_request(document, now_ms=NOW_MS, **arguments(dialect, request)) == request

    check(generated.REQUESTS[name], comes_back)


@pytest.mark.parametrize("name", generated.REPLIES)
def test_a_reply_comes_back_from_every_dialect_as_it_was(name):
    dialect = DIALECTS[name]

    def comes_back(reply):
        assert dialect.decode_reply(to_json(dialect.encode_reply(reply))) == reply

    check(generated.REPLIES[name], comes_back)


@pytest.mark.parametrize("name", documents.REQUESTS)
def test_a_request_document_is_written_as_it_was_read(name):
    dialect = DIALECTS[name]

    def comes_back(document):
        request = dialect.decode_request(document, now_ms=NOW_MS, **arguments(dialect))
        assert dialect.encode_request(request, now_ms=NOW_MS) == document

    check(documents.REQUESTS[name], comes_back)


@pytest.mark.parametrize("name", documents.REPLIES)
def test_a_reply_document_is_written_as_it_was_read(name):
    dialect = DIALECTS[name]

    def comes_back(document):
        assert dialect.encode_reply(dialect.decode_reply(document)) == document

    check(documents.REPLIES[name], comes_back)
