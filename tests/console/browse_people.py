"""What people do beside agents: talk to one, do the work of a handoff, answer its question, hear of what waits."""

from __future__ import annotations

import json
import re
import urllib.request

from playwright.sync_api import expect
from tests.console.conftest import sign_in
from tests.console.stage import TOKEN


def _post(stage, path, **body):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    asked = urllib.request.Request(f"{stage.url}{path}", json.dumps(body).encode(), headers)  # noqa: S310  the stage's own
    with urllib.request.urlopen(asked) as answer:  # noqa: S310  the stage's own
        return json.load(answer)


def test_a_conversation_streams_stays_in_one_session_and_shows_its_calls(page, stage):
    page.goto(f"{stage.url}/console/#/playground/MUSE%20message")
    for text in ("good morning", "and good night"):
        page.get_by_role("textbox", name="Message").fill(text)
        page.keyboard.press("Enter")
        expect(page.get_by_role("log")).to_contain_text(f"You said: {text}, and I agree.")
        expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator(".turn.agent .chip", has_text="success")).to_have_count(2)
    expect(page.get_by_role("region", name="Calls of the turn")).to_contain_text("MUSE")
    page.get_by_role("link", name="Session", exact=True).click()
    for text in ("good morning", "and good night"):
        expect(page.get_by_role("main")).to_contain_text(text)


def test_the_orchestrator_is_talked_to_and_names_what_it_can_do(page, stage):
    page.goto(f"{stage.url}/console/#/playground/ORC%20ORC_ROUTE")
    page.get_by_role("textbox", name="Message").fill("what can you do")
    page.keyboard.press("Enter")
    expect(page.get_by_role("log").locator(".turn.agent .chip").first).to_have_text(re.compile("success|needs input|partial"))
    expect(page.get_by_role("region", name="Calls of the turn")).to_contain_text("ORC_ROUTE")


def test_a_token_is_revoked_and_refused_from_then_on(page, stage):
    token = stage.user_token("mallory", "viewer")
    page.goto(f"{stage.url}/console/#/system")
    expect(page.get_by_role("main")).to_contain_text("EdDSA")
    page.get_by_label("Token to revoke").fill(token)
    page.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("1 token revoked")).to_be_visible()
    asked = "(t) => fetch('../v1/me', {headers: {Authorization: 'Bearer ' + t}}).then((r) => r.status)"
    assert page.evaluate(asked, token) == 401


def test_a_person_accepts_a_handoff_and_completes_it(page, stage):
    handoff_id = stage.hand_off("away", "dig", "Find the leak")
    page.goto(f"{stage.url}/console/#/handoffs/{handoff_id}")
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("dialog").get_by_role("button", name="Accept").click()
    page.get_by_role("button", name="Complete").click()
    page.get_by_role("dialog").get_by_role("textbox").fill('{"leak": "pipe 7"}')
    page.get_by_role("dialog").get_by_role("button", name="Complete").click()
    expect(page.get_by_role("region", name="Handoff").get_by_text("completed").first).to_be_visible()
    assert stage.handoff(handoff_id).reply.data == {"leak": "pipe 7"}


def _accepted(page, stage, task):
    handoff_id = stage.hand_off("away", "dig", task)
    page.goto(f"{stage.url}/console/#/handoffs/{handoff_id}")
    page.get_by_role("button", name="Accept").click()
    page.get_by_role("dialog").get_by_role("button", name="Accept").click()
    return handoff_id, page.get_by_role("region", name="Handoff")


def test_a_person_gives_a_handoff_back_and_the_next_receiver_gets_it(page, stage):
    handoff_id, shown = _accepted(page, stage, "Not mine after all")
    page.get_by_role("button", name="Give back").click()
    page.get_by_role("dialog").get_by_role("button", name="Give back").click()
    expect(shown.get_by_role("button", name="Accept")).to_be_visible()
    assert _post(stage, f"/v1/handoffs/{handoff_id}/accept", agent_id="away")["handoff"]["state"] == "accepted"


def test_a_person_fails_a_handoff_with_a_reason(page, stage):
    handoff_id, shown = _accepted(page, stage, "Find what is not there")
    page.get_by_role("button", name="Fail").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("there is no leak")
    page.get_by_role("dialog").get_by_role("button", name="Fail").click()
    expect(shown).to_contain_text("there is no leak")
    assert stage.handoff(handoff_id).state == "failed"
    page.goto(f"{stage.url}/console/#/handoffs?as=dead")
    expect(page.get_by_role("row", name=re.compile("Find what is not there"))).to_contain_text("there is no leak")


def test_the_question_of_a_receiver_is_answered_and_a_handoff_is_cancelled(page, stage):
    asked, other = stage.hand_off("away", "dig", "Which pipe?"), stage.hand_off("away", "dig", "Not needed any more")
    lease = _post(stage, f"/v1/handoffs/{asked}/accept", agent_id="away")["lease"]
    _post(stage, f"/v1/handoffs/{asked}/ask", lease=lease, question="Cold or hot?", wait_ms=0)
    page.goto(f"{stage.url}/console/#/handoffs/{asked}")
    page.get_by_role("button", name="Answer").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("hot")
    page.get_by_role("dialog").get_by_role("button", name="Send the answer").click()
    told = _post(stage, f"/v1/handoffs/{asked}/ask", lease=lease, question="Cold or hot?", wait_ms=30_000)
    assert told["answer"] == "hot"
    page.goto(f"{stage.url}/console/#/handoffs/{other}")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the handoff").click()
    expect(page.get_by_role("region", name="Handoff").get_by_text("cancelled").first).to_be_visible()


def test_a_person_who_looks_elsewhere_is_notified_once_they_allowed_it(stage, new_page):
    page = new_page()
    page.add_init_script(
        "window.told = []; window.Notification = class { static permission = 'granted'; constructor(t, o) { window.told.push(o.body); } };"
        "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'});"
    )
    sign_in(page, stage)
    page.get_by_text("Live", exact=True).wait_for()
    stage.call("CLERK", "CLERK_SETTLE", {"amount": 7})
    expect(page.get_by_role("link", name="Approvals")).to_contain_text("1")
    assert page.evaluate("window.told[0]") == "One more question waits for a person"
    page.goto(f"{stage.url}/console/#/approvals")
    page.get_by_role("button", name="Deny").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("Not this month")
    page.get_by_role("dialog").get_by_role("button", name="Deny").click()
    page.get_by_role("button", name="Decided").click()
    expect(page.get_by_role("region", name="Approval")).to_contain_text("Not this month")


def test_a_decision_that_is_answered_late_reloads_the_list_that_is_shown_by_then(stage, new_page):
    """Its reload asked for the list of before, so that the list which was picked meanwhile was never shown."""
    page, held, asked = new_page(), [], []
    sign_in(page, stage)
    stage.call("CLERK", "CLERK_SETTLE", {"amount": 8})
    page.goto(f"{stage.url}/console/#/approvals")
    page.get_by_role("button", name="Deny").click()
    page.route("**/v1/approvals/*/deny", lambda route: held.append(route))  # noqa: PLW0108  playwright marks it
    page.get_by_role("dialog").get_by_role("button", name="Deny").click()
    page.route("**/v1/approvals?*", lambda route: (asked.append(route.request.url), route.fallback()))
    with page.expect_response("**/v1/approvals?state=decided*"):
        page.get_by_role("button", name="Decided").click()
    with page.expect_response("**/v1/approvals/*/deny"):
        held[0].fallback()
    expect(page.get_by_role("region", name="Approval")).to_contain_text("CLERK")
    assert [one for one in asked if "state=waiting&limit=200" in one] == []
