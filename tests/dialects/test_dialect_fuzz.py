"""Whatever arrives, a decoder returns an envelope or raises `CallerError`; and what it accepted can be written again."""

from __future__ import annotations

import functools

import pytest
from dialect_vectors import document_of, names
from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.limits import CHAIN_MAX
from comity.dialects import DIALECTS, call_agent, convert, kdap_routing
from comity.dialects.reading.document import load
from comity.errors import CODES, CallerError

NOW_MS = 1_760_000_000_000
BESIDE = {"user_id": "u-1", "request_id": "r-1", "capability": "message"}

# Drawn from a pool: what is odd is known, and hypothesis spends its time on where to put it.
NASTY = [
    None, True, 0, -1, 1.5, -0.0, 2**70, 10**400, CHAIN_MAX + 1, "", " ", "x" * 300, "SUCCESS", "failed", "1.0", "2.0", "USER", "user",
    "2025-01-01", "2025-01-01T00:00:00.000Z", "\x00", "\x1b", "\ud800", "\x7f", "a\nb", "A_CODE: x", "CALL_NEEDS_INPUT: x", [], [None], [""],
    [1], [[]], ["a", "b"], {}, {"": 1}, {"inputs": {"a": 1}}, {"user_id": ""}, {"user_id": 5}, {"session_id": "s", "facts": ["f"], "hints": []},
    {"processing_time_ms": 0}, {"processing_time_ms": True}, {"max_depth": 1}, float("nan"), float("inf"), object(), {1: 2}, b"x",
    {"a": {"a": {"a": {"a": {}}}}},
]  # fmt: skip
VALUES = st.sampled_from(NASTY)
JSON = (
    VALUES
    | st.lists(VALUES, max_size=2)
    | st.dictionaries(st.sampled_from(["status", "id", "error", "x", ""]), VALUES, max_size=2)
)

pytestmark = pytest.mark.hypothesis  # also where the property is inside the test


def decoders():
    """Return every decoder with what writes its result again."""
    found = {}
    for name, dialect in DIALECTS.items():
        found[f"{name}/reply"] = (dialect.decode_reply, dialect.encode_reply)
        if dialect.decode_request is not None:
            beside = {key: value for key, value in BESIDE.items() if key in dialect.asks}
            found[f"{name}/request"] = (
                functools.partial(dialect.decode_request, now_ms=NOW_MS, **beside),
                functools.partial(dialect.encode_request, now_ms=NOW_MS),
            )
    found["kdap/handoff"] = (kdap_routing.decode_handoff_context, kdap_routing.encode_handoff_context)
    found["kdap/intent"] = (kdap_routing.decode_intent, kdap_routing.encode_intent)
    found["call_agent/context"] = (
        call_agent.decode_call_context,
        lambda chain: {"call_depth": len(chain), "call_chain": list(chain)},
    )
    return found


DECODERS = decoders()


def outcome(read, *given):
    """Return what was read, or the refusal."""
    try:
        return read(*given)
    except CallerError as error:
        return error


def tells(refusal):
    """Whether a refusal has a code of the table, and a message that names each place it complains of."""
    return refusal.code in CODES and all(problem.path in refusal.message for problem in refusal.facts.get("problems", ()))


def is_told_or_understood_for_good(kind, raw):
    """Whether a document was refused with a reason, or comes out again as it went in."""
    decode, encode = DECODERS[kind]
    found = outcome(decode, raw)
    return tells(found) if isinstance(found, CallerError) else encode(found) == load(raw)  # as JSON: a key 1 is the key "1"


@pytest.mark.parametrize("kind", DECODERS)
@given(value=JSON)
def test_any_value_is_read_or_refused(kind, value):
    assert is_told_or_understood_for_good(kind, value)


@pytest.mark.parametrize("kind", DECODERS)
@given(raw=st.text(max_size=30) | st.binary(max_size=30))
def test_any_text_and_any_bytes_are_read_or_refused(kind, raw):
    assert is_told_or_understood_for_good(kind, raw)


def places_in(value, path=()):
    """Yield the path of every member of a document."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield (*path, key)
        yield from places_in(inner, (*path, key))


def changed(document, path, change, value):
    """Return the document with one member replaced, removed or accompanied by a stranger."""
    copy = dict(document) if isinstance(document, dict) else list(document)
    if len(path) > 1:
        copy[path[0]] = changed(copy[path[0]], path[1:], change, value)
    elif change == "remove":
        del copy[path[0]]
    elif change == "add" and isinstance(copy, dict):
        copy["stranger"] = value
    else:
        copy[path[0]] = value
    return copy


@pytest.mark.parametrize("kind", DECODERS)
def test_a_damaged_example_is_refused_or_understood_for_good(kind):
    dialect, _, family = kind.partition("/")
    examples = [document_of(dialect, name.split("/")[1].removesuffix(".json")) for name in names(f"{dialect}/{family}_*.json")]
    damaged = st.sampled_from(examples).flatmap(
        lambda document: st.builds(
            functools.partial(changed, document),
            st.sampled_from(list(places_in(document))),
            st.sampled_from(["replace", "remove", "add"]),
            JSON,
        )
    )

    @given(damaged)
    def check(document):
        assert is_told_or_understood_for_good(kind, document)

    check()


@pytest.mark.parametrize("source", DIALECTS)
def test_a_conversion_is_made_or_refused(source):
    documents = st.sampled_from(
        [document_of(source, name.split("/")[1].removesuffix(".json")) for name in names(f"{source}/re*.json")]
    )
    damaged = st.builds(
        lambda document, key, value: document | {key: value}, documents, st.sampled_from(["status", "error", "priority"]), JSON
    )

    @given(documents | damaged | JSON, st.sampled_from([*DIALECTS, "none"]))
    def check(value, target):
        found = outcome(convert, value, source, target)
        if isinstance(found, CallerError):
            assert tells(found)
        else:
            assert load(found.document) == found.document
            assert target != source or (found.document, found.lost) == (load(value), ())

    check()
