"""Hostile content and hostile pages: nothing runs, nothing changes. Roles: a viewer may look, not act. Accessibility by axe."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect
from tests.console.conftest import AXE, sign_in
from tests.console.stage import HOSTILE, TOKEN

VIEWS = (
    "#/map",
    "#/calls?all=1",
    "#/sessions/s-axe",
    "#/insights",
    "#/insights?tab=query&q=%7B%7D",
    "#/audit?verify=1",
    "#/approvals",
    "#/handoffs",
    "#/guidance",
    "#/guidance?tab=edit",
    "#/playground/ODD%20ODD_SAY",
    "#/workflows",
    "#/workflows?tab=definitions",
    "#/system",
)


@pytest.fixture(scope="module")
def filled(stage):
    """Return the stage after calls that were refused, failed, wait for a person and said hostile things."""
    stage.call("CST", "CST_OPINION", {"question": HOSTILE})
    stage.call("CLERK", "CLERK_SETTLE", {"amount": 40, "to": HOSTILE})
    stage.call("SCRIBE", "SCRIBE_CONTACT", {"note": HOSTILE}, session_id="s-axe", message=f"{HOSTILE} bob@example.com")
    stage.call("SCRIBE", "SCRIBE_REPORT", {"finding": HOSTILE})
    stage.odd = stage.call("ODD", "ODD_SAY", {"text": HOSTILE}, message=HOSTILE, objective=HOSTILE).request_id
    stage.call("NOBODY", HOSTILE[:100])
    return stage


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_serious_or_critical_finding_of_axe(filled, new_page, scheme):
    page = new_page(color_scheme=scheme)
    sign_in(page, filled)
    source = AXE.read_text()
    found = []
    for view in (*VIEWS, f"#/call/{filled.odd}", f"#/call/{filled.odd}?tab=why", f"#/call/{filled.odd}?tab=audit"):
        page.goto(f"{filled.url}/console/{view}")
        page.get_by_role("heading", level=1).first.wait_for()
        page.locator(".loading").first.wait_for(state="detached")
        page.evaluate(source)  # as the page's own world allows no foreign script, it is evaluated by the driver
        checked = page.evaluate(
            "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}).then(r => r.violations)"
        )
        found += [
            (view, one["id"], one["nodes"][0]["html"][:120]) for one in checked if one["impact"] in {"serious", "critical"}
        ]
    assert found == []


def test_nothing_that_agents_say_runs_in_the_page(filled, page):
    for view in (*VIEWS, f"#/call/{filled.odd}", f"#/call/{filled.odd}?tab=audit"):
        page.goto(f"{filled.url}/console/{view}")
        page.get_by_role("heading", level=1).first.wait_for()
        page.locator(".loading").first.wait_for(state="detached")
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main script, main iframe").count() == 0
    page.goto(f"{filled.url}/console/#/call/{filled.odd}")
    expect(page.get_by_role("region", name="Selected call")).to_contain_text("<script>window.pwned=1</script>")
    page.goto(f"{filled.url}/console/#/calls?q={HOSTILE}")
    page.get_by_role("heading", level=1).first.wait_for()
    assert page.evaluate("window.pwned") is None


def _ask(url, **headers):
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  the stage's own
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310  the stage's own
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_a_rebound_host_a_foreign_origin_and_a_frame_get_nothing(stage, new_page):
    bearer = f"Bearer {TOKEN}"
    assert _ask(f"{stage.url}/v1/me", Host="evil.example", Authorization=bearer)[0] == 421
    assert _ask(f"{stage.url}/console/", Host="evil.example")[0] == 421
    assert _ask(f"{stage.url}/v1/me", Origin="http://evil.example", Authorization=bearer)[0] == 403
    status, headers, _ = _ask(f"{stage.url}/console/")
    assert status == 200
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "set-cookie" not in {name.lower() for name in headers}
    other = stage.url.replace("127.0.0.1", "localhost")  # another origin that reaches the same server
    page = new_page(expects="Content Security Policy")  # the policy says so in the log of the page
    page.goto(f"{other}/console/")
    framed = page.evaluate(
        """(url) => new Promise((done) => { const f = document.createElement('iframe'); f.src = url; f.onload = () => {
            try { done(f.contentDocument ? 'empty' : 'blocked'); } catch { done('blocked'); } }; document.body.append(f); setTimeout(() => done('blocked'), 3000); })""",
        f"{stage.url}/console/",
    )
    assert framed in {"blocked", "empty"}
    written = page.evaluate(
        """(url) => fetch(url + '/v1/calls', {method: 'POST', headers: {'Content-Type': 'text/plain'}, body: '{}', mode: 'no-cors'})
            .then((r) => r.type, () => 'refused')""",
        stage.url,
    )
    assert written in {"refused", "opaque"}
    rows = json.loads(_ask(f"{stage.url}/v1/calls?limit=1", Authorization=bearer)[2])["items"]
    assert all(one["capability"] != "" for one in rows)


def test_a_viewer_sees_and_may_not_act(filled, new_page):
    token = filled.user_token("vera", "viewer")
    page = new_page()
    page.goto(f"{filled.url}/console/")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation", name="Views").wait_for()
    page.goto(f"{filled.url}/console/#/approvals")
    expect(page.get_by_text("may look, not decide")).to_be_visible()
    expect(page.get_by_role("button", name="Grant")).to_have_count(0)
    page.goto(f"{filled.url}/console/#/sessions/s-axe")
    page.get_by_text("email 1").first.wait_for()
    expect(page.get_by_role("button", name="Erase")).to_have_count(0)
    page.goto(f"{filled.url}/console/#/playground/LEAF%20LEAF_SAY")
    expect(page.get_by_text("may look, not call")).to_be_visible()
    page.goto(f"{filled.url}/console/#/audit")
    expect(page.get_by_role("alert")).to_contain_text("RIGHT")
    asked = page.evaluate(
        "(t) => fetch('../v1/guidance', {method: 'PUT', headers: {Authorization: 'Bearer ' + t, 'Content-Type': 'application/json'}, body: '{\"source\": \"\"}'}).then((r) => r.status)",
        token,
    )
    assert asked == 403
