import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_world import found, span, traces

from comity.core.tracing.query.structure import relate
from comity.core.tracing.query.trace import Trace

#       1 root
#      / \
#     2   3        9 has a parent that never arrived
#    / \   \
#   4   5   6
TREE = [
    span(1, name="root"),
    span(2, 1, name="left", start_ns=1),
    span(3, 1, name="right", start_ns=2),
    span(4, 2, name="leaf", start_ns=3),
    span(5, 2, name="twig", start_ns=4),
    span(6, 3, name="leaf", start_ns=5),
    span(9, 77, name="leaf", start_ns=6),
]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("{ name = `left` } > { name = `leaf` }", [4]),
        ("{ name = `root` } > { name = `leaf` }", []),
        ("{ name = `root` } >> { name = `leaf` }", [4, 6]),
        ("{ name = `leaf` } < { name = `left` }", [2]),
        ("{ name = `leaf` } << { name = `root` }", [1]),
        ("{ name = `leaf` } << {}", [1, 2, 3]),
        ("{ name = `leaf` } ~ { name = `twig` }", [5]),
        ("{ name = `leaf` } ~ { name = `leaf` }", []),
        ("{} ~ {}", [2, 3, 4, 5]),
        # who has no place in the tree is related to nobody
        ("{ name = `left` } !> { name = `leaf` }", [6, 9]),
        ("{ name = `left` } !>> {}", [1, 2, 3, 6, 9]),
        ("{ name = `twig` } !< { name =~ `left|right` }", [3]),
        ("{ name = `twig` } !<< {}", [3, 4, 5, 6, 9]),
        ("{ name = `twig` } !~ { name = `leaf` }", [6, 9]),
        ("{} !> {}", [1, 9]),
        ("{} !< {}", [4, 5, 6, 9]),
        ("{ name = `left` } &> { name = `leaf` }", [2, 4]),
        ("{ name = `right` } &>> { name = `leaf` }", [3, 6]),
        ("{ name = `leaf` } &< { name = `left` }", [2, 4]),
        ("{ name = `leaf` } &<< { name = `root` }", [1, 4, 6]),
        ("{ name = `leaf` } &~ { name = `twig` }", [4, 5]),
        ("{ name = `none` } !> { name = `leaf` }", [4, 6, 9]),
        ("{ name = `leaf` } !> { name = `none` }", []),
        ("{ name = `root` } > { name = `left` } > { name = `leaf` }", [4]),
        ("({ name = `root` } >> { name = `leaf` }) && { name = `twig` }", [4, 5, 6]),
        ("{ name = `none` } && { name = `leaf` }", []),
        ("{ name = `none` } || { name = `leaf` }", [4, 6, 9]),
    ],
)
def test_an_operator_selects_the_spans_in_its_relation(query, ids):
    assert found(query, TREE) == ids


def ancestors(spans, one):
    """The chain of parents by id, and whether it ends in a root. Written without nested sets, to check them."""
    by_id = {s.span_id: s for s in spans}
    chain, current = [], one
    while current.parent_id is not None and current.parent_id in by_id and len(chain) <= len(spans):
        current = by_id[current.parent_id]
        chain.append(current)
    return chain, current.parent_id is None


def related(op, spans, left, right):
    left_chain, right_chain = ancestors(spans, left)[0], ancestors(spans, right)[0]
    match op:
        case ">":
            return right.parent_id == left.span_id
        case "<":
            return left.parent_id == right.span_id
        case ">>":
            return any(s is left for s in right_chain)
        case "<<":
            return any(s is right for s in left_chain)
    return left is not right and left.parent_id == right.parent_id


@given(traces(spans_max=8), st.sampled_from([">", "<", ">>", "<<", "~"]), st.data())
def test_relations_by_nested_sets_are_those_by_walking_from_span_to_span(spans, op, data):
    lefts = data.draw(st.lists(st.sampled_from(spans), unique_by=id))
    rights = data.draw(st.lists(st.sampled_from(spans), unique_by=id))
    rooted = [s for s in spans if ancestors(spans, s)[1]]
    lefts, rights = ([s for s in side if any(s is r for r in rooted)] for side in (lefts, rights))
    hit = [r for r in rights if any(related(op, spans, left, r) for left in lefts)]
    partners = [left for left in lefts if any(related(op, spans, left, r) for r in rights)]
    trace = Trace(spans)
    assert set(map(id, relate(op, trace, lefts, rights))) == set(map(id, hit))
    missed = [r for r in rights if not any(r is h for h in hit)]
    assert set(map(id, relate(f"!{op}", trace, lefts, rights))) == set(map(id, missed))
    both = set(map(id, [*hit, *partners]))
    joined = set(map(id, relate(f"&{op}", trace, lefts, rights)))
    assert joined <= both if op in (">>", "<<") else joined == both


def test_ancestors_with_their_descendants_are_those_that_one_pass_along_the_tree_finds():
    nested = [span(1, name="up"), span(2, 1, name="down"), span(3, 2, name="up"), span(4, 3, name="down")]
    assert found("{ name = `up` } &>> { name = `down` }", nested) == [1, 2, 3, 4]
    # The pass has gone by 2, the only span below 3 by then, before it comes to 3.
    twins = [span(1), span(2, 1, name="low"), span(3, 1, name="mid"), span(4, 3, name="low"), span(5, 3, name="low")]
    assert found("{ name = `mid` } &>> { name = `low` }", twins) == [3, 4, 5]
