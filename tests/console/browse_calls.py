"""Looking at calls as a person would: running one, reading its tree, why it was refused, approving, the audit."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from playwright.sync_api import expect
from tests.console.conftest import sign_in
from tests.console.stage import Stage, going_on


def _go(page, stage, place):
    page.goto(f"{stage.url}/console/{place}")


def test_a_call_is_run_from_the_playground_and_watched_live(page, stage):
    going_on.clear()
    _go(page, stage, "#/playground/SCRIBE%20SCRIBE_HOLD")
    page.get_by_role("button", name="Run", exact=True).click()
    result = page.get_by_role("region", name="Result")
    expect(result.get_by_text("holding the line")).to_be_visible()
    beside = page.context.new_page()  # as another person would look on
    sign_in(beside, stage)
    _go(beside, stage, "#/calls?q=cap:SCRIBE_HOLD")
    beside.locator(".dot.live").wait_for()
    expect(beside.get_by_role("option").first).to_contain_text("running")
    going_on.set()
    expect(beside.get_by_role("option").first).to_contain_text("success")
    expect(result.get_by_text("success", exact=True).first).to_be_visible()
    expect(result.get_by_role("option", name=re.compile("SCRIBE SCRIBE_HOLD, success"))).to_be_visible()
    result.get_by_role("link", name="Open the call").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("SCRIBE_HOLD")
    expect(page.get_by_role("option", name=re.compile("SCRIBE SCRIBE_HOLD, success"))).to_be_visible()


def test_wrong_inputs_are_refused_and_named_at_their_place(page, stage):
    _go(page, stage, "#/playground/ANL%20ANL_NPV")
    page.get_by_role("button", name="JSON").click()
    page.get_by_label("inputs").fill('{"cash_flows": "many", "discount_rate": 0.1}')
    page.get_by_role("button", name="Run", exact=True).click()
    result = page.get_by_role("region", name="Result")
    expect(result).to_contain_text("INPUT_VALIDATION_FAILED")
    expect(result).to_contain_text("cash_flows")


def test_a_dry_run_names_the_rule_that_would_refuse_and_runs_nothing(page, stage):
    _go(page, stage, "#/playground/ANL%20ANL_NPV")
    before = len(stage.rows())
    page.get_by_role("button", name="JSON").click()
    page.get_by_label("inputs").fill('{"cash_flows": "many", "discount_rate": 0.1}')
    page.get_by_role("button", name="Dry run").click()
    form = page.get_by_role("form", name="Request")
    expect(form).to_contain_text("would be refused by the rule “Inputs”")
    expect(form).to_contain_text("cash_flows")
    page.get_by_label("inputs").fill('{"cash_flows": [-1, 2], "discount_rate": 0.1}')
    expect(form).not_to_contain_text("would be refused")
    page.get_by_role("button", name="Dry run").click()
    expect(form).to_contain_text("It would be admitted.")
    assert len(stage.rows()) == before


def test_a_request_to_a_model_shows_its_tokens_cost_and_retries(page, stage):
    reply = stage.call("MUSE", "message", message="hello")
    root, used = reply.request_id, reply.usage
    cost = float(f"{(used.prompt_tokens * 2 + used.completion_tokens * 8) / 1_000_000:.3g}")
    stage.flush_spans()
    _go(page, stage, f"#/call/{root}?at={root}%231")
    detail = page.get_by_role("region", name="Selected call")
    expect(detail).to_contain_text("muse")
    expect(detail).to_contain_text(f"Cost{cost:f}".rstrip("0") + " USD")
    expect(page.get_by_role("group", name="Limits of the tree")).to_contain_text(f"Cost{cost:f}".rstrip("0") + " USD")
    expect(detail).to_contain_text("Retries")
    expect(detail).to_contain_text("none")


def test_an_ended_call_shows_what_was_asked_its_chain_and_what_guardrails_did(page, stage):
    root = stage.call("SCRIBE", "SCRIBE_QUOTE", {"product": "pump"}, message="Be brief!").request_id
    stage.flush_spans()
    _go(page, stage, f"#/call/{root}")
    detail = page.get_by_role("region", name="Selected call")
    expect(detail).to_contain_text("guardrail manners rewrote the request")
    expect(detail).to_contain_text("guardrail manners withheld the message of the reply")
    expect(detail).to_contain_text("Please be brief")
    expect(detail).to_contain_text('product: "pump"')
    expect(detail.locator(".chain")).to_contain_text("ann→SCRIBE")
    expect(detail).not_to_contain_text("our price is")
    _go(page, stage, f"#/call/{root}?tab=code")
    expect(page.locator(".code-block").first).to_contain_text('"product":"pump"')


def test_a_refusal_is_explained_by_the_rule_that_said_no(page, stage):
    root = stage.call("CST", "CST_OPINION", {"question": "Should we enter?"}).request_id
    _go(page, stage, f"#/call/{root}?tab=why")
    expect(page.locator(".rules .said-no")).to_contain_text("Cycle")
    assert page.locator(".rules .passed").count() == 8
    expect(page.get_by_text("Answer with what you have", exact=False).first).to_be_visible()
    expect(page.get_by_text("Who was waiting for whom")).to_be_visible()


def test_the_list_filters_by_a_line_and_names_a_word_it_does_not_know(page, stage):
    stage.call("CST", "CST_OPINION", {"question": "?"})
    _go(page, stage, "#/calls?all=1")
    box = page.get_by_label("Filter calls")
    box.fill("status:refused stauts:x")
    box.press("Enter")
    expect(page.get_by_text("did you mean status:?")).to_be_visible()
    rows = page.get_by_role("listbox", name="Calls").get_by_role("option")
    expect(rows.first).to_contain_text("ROUTING_CYCLE_DETECTED")
    page.reload()
    expect(page.get_by_label("Filter calls")).to_have_value("status:refused stauts:x")


def test_the_list_filters_by_tokens_and_cost(page, stage):
    stage.call("MUSE", "message", message="hello")
    stage.call("LEAF", "LEAF_SAY", {"number": 1})
    _go(page, stage, "#/calls?q=tokens>1k cost>0.0001")
    expect(page.get_by_text("tokens over 1k")).to_be_visible()
    rows = page.get_by_role("listbox", name="Calls").get_by_role("option")
    expect(rows.first).to_contain_text("MUSE")
    expect(rows.filter(has_text="LEAF_SAY")).to_have_count(0)


def test_a_new_call_waits_behind_a_count_and_a_tail_shows_it_at_once(page, stage):
    _go(page, stage, "#/calls")
    page.get_by_text(re.compile("shown")).wait_for()
    page.locator(".dot.live").wait_for()
    stage.call("LEAF", "LEAF_SAY", {"number": 1})
    page.get_by_role("button", name=re.compile("new call")).click()
    expect(page.get_by_role("option").first).to_contain_text("LEAF_SAY")
    page.get_by_role("button", name="Tail").click()
    done = stage.call("LEAF", "LEAF_SAY", {"number": 2}).request_id
    expect(page.locator(f'a[href="#/call/{done}"]')).to_be_visible()


OWN = "const own = (name) => import(new URL(name, document.querySelector('script[type=module]').src));"  # the page's modules


def test_a_live_row_belongs_to_a_filtered_list_where_the_api_lists_it(page, stage):
    stage.call("CST", "CST_OPINION", {"question": "?"}, session_id="s-fits")
    stage.call("MUSE", "message", message="hello")
    stage.call("WIDE", "WIDE_FAN", {"count": 2}, user_id="bob")
    words = [
        "agent:CST",
        "agent:LEAF",
        "cap:LEAF_SAY",
        "user:bob",
        "session:s-fits",
        "status:refused,success",
        "code:ROUTING_*",
    ]
    words += ["code:ROUTING_", "code:ROUTING_CYCLE_DETECTED", ">1ms", "tokens>1", "cost>0.0001", "LEAF", "since:1h", "until:1h"]
    differing = page.evaluate(
        f"""async (words) => {{ {OWN}
          const [{{ get }}, {{ CallRows }}, {{ parseFilter }}] = await Promise.all(['api.js', 'views/calls.js', 'filter.js'].map(own));
          const every = (await get('calls', {{ limit: 1000 }})).items, wrong = [];
          for (const word of words) for (const roots of [true, false]) {{
            const params = {{ ...parseFilter(word).params, roots }}, list = new CallRows(params, () => {{}});
            const [fit, listed] = [every.filter((row) => list.fits(row)), (await get('calls', {{ ...params, limit: 1000 }})).items];
            if (fit.map((row) => row.seq).join() !== listed.map((row) => row.seq).join()) wrong.push([word, roots, fit.length, listed.length]);
          }}
          return wrong; }}""",
        words,
    )
    assert differing == []


def test_a_tail_keeps_its_bound_and_counts_what_leaves(page, stage):
    kept = page.evaluate(
        f"""async () => {{ {OWN}
          const {{ CallRows, TAIL_ROWS_MAX }} = await own('views/calls.js');
          const tail = new CallRows({{}}, () => {{}}), still = new CallRows({{}}, () => {{}});
          for (let n = 0; n < TAIL_ROWS_MAX + 50; n += 1) for (const one of [tail, still]) one.take({{ request_id: `r${{n}}`, target: 'A' }}, one === tail);
          const told = [tail.rows.length - TAIL_ROWS_MAX, tail.byId.size - TAIL_ROWS_MAX, tail.dropped, tail.rows[0].request_id === `r${{TAIL_ROWS_MAX + 49}}`];
          return [...told, still.aside.length + still.missed - TAIL_ROWS_MAX, still.aside.length < TAIL_ROWS_MAX, still.admit()]; }}"""
    )
    assert kept == [0, 0, 50, True, 50, True, False]


def test_the_map_shows_what_was_refused_and_leads_to_the_calls_of_an_agent(page, stage):
    stage.call("CST", "CST_OPINION", {"question": "?"})
    _go(page, stage, "#/map")
    expect(page.get_by_role("complementary")).to_contain_text("Cycle")
    page.get_by_role("link", name="Agent CST").click()
    card = page.get_by_role("complementary", name="Agent CST")
    expect(card).to_contain_text("Queued")
    expect(card).to_contain_text("p95")
    card.get_by_role("link", name="Calls", exact=True).click()
    expect(page.get_by_label("Filter calls")).to_have_value("agent:CST")
    expect(page.get_by_role("option").first).to_contain_text("CST")


def test_two_calls_are_compared(page, stage):
    first = stage.call("LEAF", "LEAF_SAY", {"number": 7}).request_id
    second = stage.call("LEAF", "LEAF_SAY", {"number": 8}).request_id
    _go(page, stage, f"#/call/{first}?tab=compare&with={second}")
    expect(page.get_by_role("row", name=re.compile("Reply data.number 7 8"))).to_be_visible()


def test_a_nested_tool_is_approved_and_its_call_goes_on(page, stage):
    root = stage.call("CLERK", "CLERK_SETTLE", {"amount": 40, "to": "ACME"}).request_id
    _go(page, stage, "#/approvals")
    detail = page.get_by_role("region", name="Approval")
    expect(detail).to_contain_text("CLERK")
    expect(detail).to_contain_text("BANK")
    page.get_by_role("button", name="Grant").click()
    page.get_by_role("dialog").get_by_role("button", name="Grant").click()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    _go(page, stage, f"#/call/{root}")
    expect(page.locator(".call-head")).to_contain_text("success")
    page.get_by_role("option", name=re.compile("BANK BANK_PAY")).click()
    expect(page.get_by_role("region", name="Selected call")).to_contain_text("paid 40 to ACME")


def test_the_audit_is_verified(page, stage):
    stage.call("LEAF", "LEAF_SAY", {"number": 3})
    _go(page, stage, "#/audit")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The chain is whole.")).to_be_visible()


def test_an_audit_that_was_changed_is_not_called_whole(new_page, tmp_path):
    with Stage(tmp_path) as stage:
        stage.call("LEAF", "LEAF_SAY", {"number": 3})
        with closing(sqlite3.connect(tmp_path / "stage.db")) as store, store:
            store.execute("UPDATE audit SET body = replace(CAST(body AS TEXT), 'ann', 'eve') WHERE id = 2")
        page = new_page()
        sign_in(page, stage)
        _go(page, stage, "#/audit?verify=1")
        expect(page.get_by_text("The chain is broken.")).to_be_visible()
        expect(page.get_by_text("First row that does not fit: 2.")).to_be_visible()


def test_guidance_that_is_edited_blocks_the_next_call(page, stage):
    _go(page, stage, "#/guidance?tab=edit")
    page.get_by_label("Guidance, YAML or JSON").fill("constraints: [{id: frozen}]")
    expect(page.get_by_role("alert")).to_contain_text("constraints")
    page.get_by_label("Guidance, YAML or JSON").fill(
        'constraints:\n- {id: frozen, rule: Leave it, scope: "src/**", severity: blocking}\n'
    )
    expect(page.get_by_role("row", name=re.compile("CODER_EDIT"))).to_contain_text("frozen")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("dialog").get_by_role("button", name="Put in force").click()
    expect(page.get_by_text("The guidance is in force")).to_be_visible()
    _go(page, stage, "#/playground/CODER%20CODER_EDIT")
    page.get_by_label("path").fill("src/app.py")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("region", name="Result")).to_contain_text("GUIDANCE_BLOCKED")


def test_a_session_shows_tokens_reveals_one_and_is_erased(page, stage):
    stage.call("SCRIBE", "SCRIBE_CONTACT", {"note": "hello"}, session_id="s-erase", message="write to bob@example.com")
    _go(page, stage, "#/sessions/s-erase")
    token = page.get_by_role("button", name="email 1").first
    token.click()
    page.get_by_role("dialog").get_by_role("button", name="Reveal").click()
    expect(page.get_by_text("bob@example.com")).to_be_visible()
    page.get_by_role("button", name="Erase", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Erase", exact=True)).to_be_disabled()
    dialog.get_by_label(re.compile("Type")).fill("s-erase")
    dialog.get_by_role("button", name="Erase", exact=True).click()
    expect(page.get_by_text("The session was erased")).to_be_visible()
    _go(page, stage, "#/sessions/s-erase")
    expect(page.get_by_role("alert")).to_contain_text("HTTP_RESOURCE_UNKNOWN")
    _go(page, stage, "#/audit?q=kind:noted")
    expect(page.get_by_role("listbox", name="Audit rows")).to_contain_text("personal data was revealed")


def test_a_query_with_an_error_is_marked_at_its_column_then_runs(page, stage):
    stage.call("LEAF", "LEAF_SAY", {"number": 4})
    stage.call("LEAF", "LEAF_SAY", {"number": "four"})  # refused: it took no time at all
    stage.flush_spans()
    _go(page, stage, "#/insights?tab=query")
    box = page.get_by_label("TraceQL query")
    box.fill("{ name == 1 }")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("col 9")
    box.fill('{ insight.type = "decision" }')  # as seed 003 writes it, which Tempo does not read
    box.press("Enter")
    page.get_by_role("button", name='{ span.insight.type = "decision" }').click()
    expect(box).to_have_value('{ span.insight.type = "decision" }')
    expect(page.get_by_role("alert")).to_have_count(0)
    box.fill('{ name =~ "invoke_agent LEAF" }')
    box.press("Enter")
    expect(page.get_by_role("row", name=re.compile("invoke_agent LEAF")).nth(1)).to_be_visible()
    expect(page.get_by_role("table")).not_to_contain_text("NaN")
    page.get_by_role("button", name="Tree").click()
    page.get_by_role("listbox", name="Calls of the tree").get_by_role("option").first.click()
    expect(page.locator("details.trace .facts")).to_contain_text("gen_ai.operation.name")
    page.get_by_role("button", name="Table").click()
    box.fill("{ sta")
    expect(page.get_by_role("listbox", name="Suggestions")).to_contain_text("status")


def test_suggestions_close_with_the_box_and_stay_when_it_is_entered_again(page, stage):
    page.clock.install()
    _go(page, stage, "#/insights?tab=query")
    box, shown = page.get_by_label("TraceQL query"), page.get_by_role("listbox", name="Suggestions")
    box.fill("{ sta")
    expect(shown).to_contain_text("status")
    page.clock.pause_at(page.evaluate("Date.now()") + 1_000)
    box.blur()
    box.fill("{ stat")
    expect(shown).to_contain_text("status")
    page.clock.run_for(1_000)  # a timer that leaving the box had started closed the list
    expect(shown).to_contain_text("status", timeout=1)
    box.blur()
    expect(shown).to_have_count(0)


def test_the_audience_is_switched(page, stage):
    stage.call("SCRIBE", "SCRIBE_REPORT", {"finding": "We enter in steps"})
    _go(page, stage, "#/insights")
    expect(page.get_by_text("We enter in steps").first).to_be_visible()
    page.get_by_role("button", name="Executive").click()
    expect(page.get_by_role("heading", name="by type")).to_be_visible()
    page.get_by_role("button", name="Agent").click()
    expect(page.get_by_text("What an agent is told")).to_be_visible()
    told = page.locator("pre.code-block")
    expect(told).to_contain_text("We enter in steps")
    expect(told).not_to_contain_text("One source of prices is stale")  # that risk is for people


VIEWS = (
    "Map", "Sessions", "Insights", "Audit", "Approvals", "Handoffs", "Guidance", "Playground", "Workflows", "System", "Calls",
)  # fmt: skip


def test_everything_is_reached_by_keys_alone(stage, new_page):
    page = new_page()
    sign_in(page, stage)
    root = stage.call("LEAF", "LEAF_SAY", {"number": 5}).request_id
    for key, title in zip("msianhupwyc", VIEWS, strict=True):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.locator(f'a[href="#/call/{root}"]')).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/call/{root}"))
    page.get_by_role("tab", name="Tree").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Why refused")).to_be_focused()
    expect(page.get_by_role("tab", name="Why refused")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Go to Approvals")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("only refused")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Filter calls")).to_have_value("status:refused")
