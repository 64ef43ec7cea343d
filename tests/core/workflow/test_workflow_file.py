"""Definitions as files and from the builder: what is read, and every mistake with its place."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.workflow import fields
from comity.core.workflow.builder import END, Workflow
from comity.core.workflow.check import Offer, check, check_text
from comity.core.workflow.duration import duration_ms, duration_text
from comity.core.workflow.model import content_hash
from comity.core.workflow.read import DefinitionError, load
from comity.core.workflow.source import read_source

GOOD = """\
workflow: find-email
version: "1.2"
input: {type: object, required: [company], properties: {company: {type: string}}}
limits: {steps_max: 50, tokens_max: 20000, runtime_max: 3d}
nodes:
  research: {call: RES/FIND, input: {company: "{{input.company}}"}, timeout: 30s, retry: {max: 2, on: [CALL_TIMEOUT]}}
  validate: {call: VAL/CHECK, after: [research], input: {emails: "{{research.data.guesses}}"}}
  confirm:  {ask: "Is {{validate.data.valid_email}} right?", options: [yes, no], timeout: 7d, default: no}
  note:     {call: DOC/WRITE, input: {text: "CEO {{research.data.ceo_name}}"}}
edges:
  - {from: research, when: 'response.status == "failure"', to: end}
  - {from: validate, when: 'response.data.score > 0.8', to: note}
  - {from: validate, when: 'response.data.score <= 0.8', to: confirm}
  - {from: confirm, to: note}
output: {email: "{{validate.data.valid_email}}"}
"""
CATALOG = {
    "RES": {
        "FIND": Offer(
            {
                "type": "object",
                "properties": {"company": {"type": "string"}},
                "required": ["company"],
                "additionalProperties": False,
            },
            {
                "type": "object",
                "properties": {"guesses": {"type": "array", "items": {"type": "string"}}, "ceo_name": {"type": "string"}},
            },
        )
    },
    "VAL": {
        "CHECK": Offer(
            {
                "type": "object",
                "properties": {"emails": {"type": "array", "items": {"type": "string"}}},
                "required": ["emails"],
            },
            {"type": "object", "properties": {"valid_email": {"type": "string"}, "score": {"type": "number"}}},
        )
    },
    "DOC": {"WRITE": Offer({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}, None)},
}


def mistakes(text: str, catalog=CATALOG, library=None) -> list[str]:
    return [str(one) for one in check_text(text, catalog, library)]


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_sound_file_has_no_mistakes_and_fits_the_published_schema():
    assert mistakes(GOOD) == []
    validator = jsonschema_rs.validator_for(fields.json_schema())
    assert [one.message for one in validator.iter_errors(read_source(GOOD).document)] == []


def test_yes_no_and_on_are_texts():
    definition = load(GOOD)
    assert definition.nodes["confirm"].ask.options == ("yes", "no")
    assert definition.nodes["confirm"].ask.default == "no"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("retry:", "retri:", 6, "unknown key `retri`; did you mean `retry`?"),
        ("to: note}\n  - {from: validate, when: 'response.data.score <=", "to: nte}\n  - {from: validate, when: 'response.data.score <=", 12, "no node `nte`; did you mean `note`?"),
        ("3d}", "3 days}", 4, "no duration"),
        ("score > 0.8", "score >> 0.8", 12, "unexpected '>'"),
        ("{type: object, required: [company], properties: {company: {type: string}}}", "{company: {type: string}}", 3, "has no keyword of JSON Schema"),
        ("{{input.company}}", "{{input.company", 6, "not closed"),
        ("call: VAL/CHECK", "call: VAL/CHEK", 7, "no capability `CHEK`; did you mean `CHECK`?"),
        ("call: RES/FIND", "call: REZ/FIND", 6, "no agent `REZ`; did you mean `RES`?"),
        ("{{input.company}}", "{{input.compny}}", 6, "input.compny does not exist"),
        ("{{research.data.guesses}}", "{{research.data.gueses}}", 7, "research.data.gueses does not exist"),
        ("{{research.data.guesses}}", "{{research.data.ceo_name}}", 7, "is string, and `emails` of VAL/CHECK is array"),
        ('emails: "{{research.data.guesses}}"', "emails: 5", 7, "`emails` of VAL/CHECK"),
        ('{company: "{{input.company}}"}', "{}", 6, "needs the input `company`"),
        ('company: "{{input.company}}"', 'company: x, firm: y', 6, "no input `firm`"),
        ("{{research.data.ceo_name}}", "{{reserch.data.ceo_name}}", 9, "no node `reserch`"),
        ("{{research.data.guesses}}", "{{note.data.x}}", 7, "note does not run before this"),
        ('response.status == "failure"', 'response.status == "failed"', 11, "never 'failed'"),
        ("response.data.score > 0.8", 'response.data.score == "high"', 12, "is number, never 'high'"),
        ("version:", "verzion:", 2, "did you mean `version`?"),
        ("  note:     {call", "  end:     {call", 9, "`end` is reserved"),
        ("call: DOC/WRITE", "cal: DOC/WRITE", 9, "has no verb; did you mean `call` instead of `cal`?"),
        ("- {from: confirm, to: note}", "- {from: confirm, to: note, on: error, else: true}", 14, "one of them says when"),
        ("- {from: confirm, to: note}", "- {from: confirm, to: validate}", 14, "has no bound"),
        ("- {from: confirm, to: note}", "- {from: confirm, to: note, max: 3}", 14, "closes none"),
        ("  note:     {call: DOC/WRITE,", "  note:     {join: 5, call: DOC/WRITE,", 9, "it never fires"),
        ("{{validate.data.valid_email}}\"}", "{{item.x}}\"}", 15, "only a node with `map` has"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_with_its_line_and_what_to_do(old: str, new: str, line: int, said: str):
    found = mistakes(changed(old, new))
    assert any(one.startswith(f"{line}:") and said in one for one in found), found


def test_every_mistake_is_found_at_once():
    text = GOOD.replace("RES/FIND", "REZ/FIND").replace("VAL/CHECK", "VAL/CHEK").replace("{{input.company}}", "{{input.x}}")
    assert len(mistakes(text)) == 3


def test_a_mistake_of_the_form_hides_no_agent_that_is_not_there():
    text = GOOD.replace("RES/FIND", "REZ/FIND").replace("VAL/CHECK", "VAL/CHEK").replace("retry:", "retri:")
    found = mistakes(text)
    assert len(found) == 3
    assert [word for word in ("REZ", "CHEK", "retri") if not any(word in one for one in found)] == []


def test_the_column_is_that_of_the_key():
    (found,) = check_text(changed("retry:", "retri:"), CATALOG)
    assert GOOD.splitlines()[found.line - 1].replace("retry", "retri")[found.column - 1 :].startswith("retri")


def test_branches_of_one_decision_never_fill_a_join_of_two():
    text = """
workflow: x
nodes:
  d: {decide: 1}
  a: {set: 1}
  b: {set: 2}
  j: {join: 2, after: [a, b]}
edges: [{from: d, to: a, when: 'input.n > 1'}, {from: d, to: b, else: true}]
"""
    assert any("at most 1 can be taken together" in one for one in mistakes(text))
    assert mistakes(text.replace("{decide: 1}", "{set: 1}")) == []


def test_a_node_that_nothing_leads_to_is_found():
    text = "workflow: x\nnodes: {a: {set: 1}, b: {set: 2}}\nedges: [{from: start, to: a}]"
    assert any("nothing leads to it" in one for one in mistakes(text))
    text = "workflow: x\nnodes: {a: {end: success}, b: {set: 2, after: [a]}}"
    assert any("nothing leads to it" in one for one in mistakes(text))


def test_a_workflow_that_would_run_itself_is_refused():
    one, other = load("workflow: one\nnodes: {a: {run: other}}"), load("workflow: other\nnodes: {a: {run: one}}")
    library = {"one": one, "other": other}
    assert any("never end" in str(said) for said in check(one, None, None, library))
    assert any("no workflow `othr`" in one for one in mistakes("workflow: x\nnodes: {a: {run: othr}}", CATALOG, library))


@pytest.mark.parametrize(
    ("default", "said"),
    [
        ("maybe", ["3:38: nodes.q.default: `maybe` is none of the options yes, no"]),
        ("yess", ["3:38: nodes.q.default: `yess` is none of the options yes, no; did you mean `yes`?"]),
        ("no", []),
        ("'{{input.word}}'", []),  # known when the run asks
    ],
)
def test_the_default_of_a_question_is_one_of_its_options(default: str, said: list[str]):
    found = check_text(f"workflow: w\nnodes:\n  q: {{ask: Sure, options: [yes, no], default: {default}, timeout: 1d}}\n")
    assert [str(one) for one in found] == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("a: [1", "cannot be read"),
        ("workflow: x\nnodes: {a: &b {set: 1}, c: *b}", "anchors and aliases"),
        ("workflow: x\nworkflow: y\nnodes: {a: {set: 1}}", "is given twice"),
        ("- 1", "is an object"),
        ("workflow: x", "`nodes` is required"),
        ("workflow: x\nnodes: {a: {set: 1, call: A/X}}", "has call and set"),
    ],
)
def test_a_text_that_is_no_definition_says_why(text: str, said: str):
    assert any(said in one for one in mistakes(text))
    with pytest.raises(DefinitionError):
        load(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_and_nothing_else_is_raised(text: str):
    assert mistakes(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "call", "{{a.b}}", "x/y", "end", "{{", "3d"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["call", "map", "over", "wait", "after", "when", "input", "retry", "max", "a", "nodes"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["a", "b"]), JSON, max_size=2), st.lists(JSON, max_size=2), JSON)
def test_any_document_is_judged_without_an_exception(nodes, edges, limits):
    text = json.dumps({"workflow": "x", "nodes": nodes, "edges": edges, "limits": limits})
    for one in check_text(text, CATALOG, {}):
        assert one.message


def test_the_builder_makes_the_document_that_the_file_is():
    flow = Workflow(
        "find-email",
        version="1.2",
        input=load(GOOD).input_schema,
        limits={"steps_max": 50, "tokens_max": 20000, "runtime_max": "3d"},
    )
    research = flow.call(
        "research",
        "RES",
        "FIND",
        input={"company": flow.input.company},
        timeout="30s",
        retry={"max": 2, "on": ["CALL_TIMEOUT"]},
    )
    validate = flow.call("validate", "VAL", "CHECK", after=[research], input={"emails": research.data.guesses})
    confirm = flow.ask("confirm", f"Is {validate.data.valid_email} right?", options=["yes", "no"], timeout="7d", default="no")
    note = flow.call("note", "DOC", "WRITE", input={"text": f"CEO {research.data.ceo_name}"})
    flow.edge(research, END, when='response.status == "failure"')
    flow.edge(validate, note, when="response.data.score > 0.8")
    flow.edge(validate, confirm, when="response.data.score <= 0.8")
    flow.edge(confirm, note)
    flow.output({"email": validate.data.valid_email})
    made, read = flow.definition(), load(GOOD)
    assert (made.nodes, made.edges, made.output, made.limits) == (read.nodes, read.edges, read.output, read.limits)
    with pytest.raises(ValueError, match="already"):
        flow.set("note", 1)


def test_the_content_hash_ignores_the_order_of_keys_and_nothing_else():
    one, other = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert content_hash(one) == content_hash(other) != content_hash({**one, "a": 2})


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("2w", 1_209_600_000), ("P3DT4H", 273_600_000), ("PT0S", 0), ("P", None), ("3", None), ("11000w", None)],
)  # fmt: skip
def test_durations(text: str, ms: int | None):
    assert duration_ms(text) == ms
    if ms:
        assert duration_ms(duration_text(ms)) == ms


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("{strategy: vote, field: price, need: 2}", []),
        ("{strategy: synthesise, agent: W}", []),
        ("{strategy: mine, whatever: 1}", []),
        ("{strategy: vote, ned: 2}", ["4:35: nodes.g.aggregate.ned: `vote` has no option `ned`; did you mean `need`?"]),
        ("{strategy: merge, field: price}", ["4:36: nodes.g.aggregate.field: `merge` has no option `field`"]),
    ],
)
def test_an_option_that_a_strategy_does_not_have_is_a_mistake(verb, said):
    text = f"workflow: g\nnodes:\n  a: {{call: A/X}}\n  g: {{aggregate: {verb}, after: [a]}}\n"
    assert [str(one) for one in check_text(text)] == said
