"""Hostile content and hostile pages: nothing runs, nothing changes. Roles: a viewer may look, not act. Accessibility by axe."""

from __future__ import annotations

import http.server
import json
import threading
import time
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect
from tests.console.conftest import AXE, sign_in
from tests.console.stage import HOSTILE, TOKEN

VIEWS = (
    "#/map",
    "#/map/ODD",
    "#/calls?all=1",
    "#/sessions/s-axe",
    "#/insights",
    "#/insights?audience=executive",
    "#/insights?audience=agent",
    "#/insights?tab=query&q=%7B%7D",
    "#/insights?tab=query&as=tree&q=%7B%20resource.service.name%20%3D%20%22foreign%22%20%7D",
    "#/insights?tab=query&q=%7B%20resource.service.name%20%3D%20%22foreign%22%20%7D%20%7C%20select(span.hostile)",
    "#/insights?tab=query&q=%7B%7D%20%7C%20rate()%20by%20(span.hostile)",
    "#/audit?verify=1",
    "#/approvals",
    "#/handoffs",
    "#/handoffs?as=table",
    "#/handoffs?as=dead",
    "#/guidance",
    "#/guidance?tab=edit",
    "#/guidance?tab=questions",
    "#/playground/ODD%20ODD_SAY",
    "#/playground/MUSE%20message",
    "#/workflows",
    "#/workflows?tab=definitions",
    "#/workflows?tab=check",
    "#/system",
)
CALL_TABS = ("", "?tab=why", "?tab=audit", "?tab=code", "?tab=compare")
HOSTILE_GUIDANCE = {
    "focus": {"areas": [HOSTILE], "reason": HOSTILE},
    "constraints": [{"id": "hostile", "rule": HOSTILE, "scope": "docs/**", "severity": "warning", "reason": HOSTILE}],
    "preferences": [{"id": "p", "preference": HOSTILE, "reason": HOSTILE}],
    "context": [{"topic": HOSTILE, "content": HOSTILE}],
    "questions": [{"id": "q", "question": HOSTILE, "priority": "high"}],
}
HOSTILE_WORKFLOW = {
    "workflow": "hostile",
    "description": HOSTILE,
    "nodes": {"ask": {"ask": HOSTILE, "options": [HOSTILE, "no"]}},
}


@pytest.fixture(scope="module")
def filled(stage):
    """Return the stage after calls that were refused, failed, wait for a person and said hostile things."""
    stage.call("CST", "CST_OPINION", {"question": HOSTILE})
    stage.call("CLERK", "CLERK_SETTLE", {"amount": 40, "to": HOSTILE})
    stage.call("SCRIBE", "SCRIBE_CONTACT", {"note": HOSTILE}, session_id="s-axe", message=f"{HOSTILE} bob@example.com")
    stage.call("SCRIBE", "SCRIBE_REPORT", {"finding": HOSTILE})
    stage.odd = stage.call("ODD", "ODD_SAY", {"text": HOSTILE}, message=HOSTILE, objective=HOSTILE).request_id
    stage.call("NOBODY", HOSTILE[:100])
    stage.call(HOSTILE[:60], "GO")
    stage.call("LEAF", "LEAF_SAY", {"number": 1}, user_id=HOSTILE[:60])
    post(stage, "/v1/traces", {"resourceSpans": [_foreign_spans()]})
    ask = f"{stage.url}/v1/guidance"
    put = urllib.request.Request(ask, json.dumps({"source": json.dumps(HOSTILE_GUIDANCE)}).encode(), _HEADERS, method="PUT")  # noqa: S310
    with urllib.request.urlopen(put) as answer:  # noqa: S310  the stage's own
        assert answer.status == 200
    stage.loop.call_soon_threadsafe(stage.node.workflows.add, json.dumps(HOSTILE_WORKFLOW))
    stage.run = post(stage, "/v1/workflows/hostile/runs", {"input": {"said": HOSTILE}})["run_id"]
    stage.handed = stage.hand_off("away", "dig", HOSTILE)
    lease = post(stage, f"/v1/handoffs/{stage.handed}/accept", {"agent_id": "away"})["lease"]
    post(stage, f"/v1/handoffs/{stage.handed}/progress", {"lease": lease, "data": {"said": HOSTILE}})
    post(stage, f"/v1/handoffs/{stage.handed}/ask", {"lease": lease, "question": HOSTILE, "wait_ms": 0})
    failed = stage.hand_off("away", "dig", HOSTILE)
    lease = post(stage, f"/v1/handoffs/{failed}/accept", {"agent_id": "away"})["lease"]
    post(stage, f"/v1/handoffs/{failed}/fail", {"lease": lease, "reason": HOSTILE})
    stage.flush_spans()
    return stage


_HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


def post(stage, path, body):
    """Send a body to the stage and return the answer."""
    asked = urllib.request.Request(f"{stage.url}{path}", json.dumps(body).encode(), _HEADERS)  # noqa: S310  the stage's own
    with urllib.request.urlopen(asked) as answer:  # noqa: S310  the stage's own
        return json.load(answer)


def _foreign_spans():
    """Return spans of another framework, hostile wherever a span has text."""
    said = [
        {"key": name, "value": {"stringValue": HOSTILE}} for name in ("hostile", HOSTILE, "gen_ai.agent.id", "comity.status")
    ]
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": HOSTILE, "kind": 1,
        "startTimeUnixNano": str(time.time_ns() - 10**9), "endTimeUnixNano": str(time.time_ns()), "attributes": said,
        "events": [{"timeUnixNano": str(time.time_ns()), "name": HOSTILE, "attributes": said}],
        "status": {"code": 2, "message": HOSTILE},
    }  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "foreign"}}]}
    return {"resource": resource, "scopeSpans": [{"scope": {"name": HOSTILE}, "spans": [span]}]}


def _places(filled):
    """Return every view, with what each can open."""
    opened = (f"#/handoffs/{filled.handed}", f"#/workflows/{filled.run}", f"#/workflows/{filled.run}?node=ask")
    return (*VIEWS, *opened, *(f"#/call/{filled.odd}{tab}" for tab in CALL_TABS))


def _open(page, filled, place):
    page.goto(f"{filled.url}/console/{place}")
    page.get_by_role("heading", level=1).first.wait_for()
    page.locator(".loading").first.wait_for(state="detached")


def _findings(page, place):
    """Return what axe holds to be serious or critical in what the page shows now."""
    page.evaluate(AXE.read_text())  # as the page's own world allows no foreign script, it is evaluated by the driver
    asked = "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}).then(r => r.violations)"
    grave = [one for one in page.evaluate(asked) if one["impact"] in {"serious", "critical"}]
    return [(place, one["id"], one["nodes"][0]["html"][:120]) for one in grave]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_serious_or_critical_finding_of_axe(filled, new_page, scheme):
    page = new_page(color_scheme=scheme)
    page.goto(f"{filled.url}/console/")
    page.get_by_label("Token").wait_for()
    found = _findings(page, "signing in")
    sign_in(page, filled)
    for view in _places(filled):
        _open(page, filled, view)
        found += _findings(page, view)
    for key, name in (("Control+k", "palette"), ("?", "keys")):
        page.keyboard.press(key)
        page.get_by_role("dialog").wait_for()
        found += _findings(page, name)
        page.keyboard.press("Escape")
    page.goto(f"{filled.url}/console/#/call/there-is-none")
    page.get_by_role("alert").wait_for()
    found += _findings(page, "an error")
    assert found == []


# Notes what takes a click; then: what of it is shown and reached neither by Tab nor by the arrows of a list or of tabs. A drag over the
# counts of the calls is left out: the line of filters above takes the same times.
NOTE_CLICKS = """const add = EventTarget.prototype.addEventListener; window.clicked = new Set();
EventTarget.prototype.addEventListener = function (kind, ...rest) {
  if (this instanceof Element && /^(click|dblclick|pointerdown|mousedown)$/.test(kind)) window.clicked.add(this);
  return add.call(this, kind, ...rest);
};"""
UNREACHED = """() => [...window.clicked, ...document.querySelectorAll('a, button, input, select, textarea, summary, [role=option]')].filter((one) =>
  one.isConnected && one.checkVisibility() && !one.disabled && one.tabIndex < 0 && !one.matches('dialog, .histogram svg')
  && !(one.closest('[role=listbox]')?.tabIndex >= 0) && !one.closest('[role=tablist]')?.querySelector('[tabindex="0"]')).map((one) => one.outerHTML.slice(0, 120))"""


def test_whatever_takes_a_click_is_reached_by_keys(filled, new_page):
    page = new_page()
    page.add_init_script(NOTE_CLICKS)
    sign_in(page, filled)
    unreached = []
    for view in _places(filled):
        _open(page, filled, view)
        unreached += [(view, one) for one in page.evaluate(UNREACHED)]
    assert unreached == []
    assert page.evaluate("window.clicked.size") > 100  # of those that were noted


SAYS_IT = {  # views that show what agents said; in the others it would have to be opened
    "#/map/ODD", "#/sessions/s-axe", "#/insights", "#/insights?audience=agent", "#/audit?verify=1", "#/approvals", "#/handoffs",
    "#/handoffs?as=dead", "#/guidance", "#/guidance?tab=questions", "#/workflows", "#/workflows?tab=definitions",
}  # fmt: skip


def test_nothing_that_agents_say_runs_in_the_page(filled, page):
    says_it = {*SAYS_IT, f"#/handoffs/{filled.handed}", f"#/workflows/{filled.run}", f"#/call/{filled.odd}"}
    for view in _places(filled):
        _open(page, filled, view)
        if view.split("?node")[0] in says_it or "tab=query" in view:  # what is not shown cannot fail to run
            expect(page.locator("main")).to_contain_text("<script>window.pwned")
        assert page.evaluate("window.pwned") is None
        assert page.locator("main img, main script, main iframe").count() == 0
    _open(page, filled, VIEWS[8])  # the tree of the foreign trace, and what its span says
    page.locator(".wf-row[role=option]").first.click()
    expect(page.locator(".trace dl.facts")).to_contain_text("<script>window.pwned=1</script>")
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


ATTACKS = {  # what a page can send without asking first: no preflight, with and without the credentials of the browser
    "form": """(url) => new Promise((done) => { const f = document.createElement('form'); f.method = 'POST'; f.action = url; f.target = 'sink';
        const i = document.createElement('iframe'); i.name = 'sink'; i.onload = () => done('sent'); document.body.append(i, f); f.submit(); setTimeout(() => done('sent'), 1500); })""",
    "fetch": """(url) => fetch(url, {method: 'POST', mode: 'no-cors', credentials: 'include', headers: {'Content-Type': 'text/plain'},
        body: JSON.stringify({target: 'LEAF', capability: 'LEAF_SAY', inputs: {number: 666}, user_id: 'mallory'})}).then((r) => r.type, () => 'refused')""",
    "beacon": """(url) => navigator.sendBeacon(url, new Blob(['{"target":"LEAF","capability":"LEAF_SAY","inputs":{"number":666},"user_id":"mallory"}'], {type: 'text/plain'}))""",
    "image": """(url) => new Promise((done) => { const i = new Image(); i.onload = () => done('loaded'); i.onerror = () => done('refused'); i.src = url; })""",
}


@pytest.fixture
def evil(stage):
    """Return the address of another site on this machine, whose page holds nothing and forbids nothing."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title><body>")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def _kept(stage):
    """Return what a request could have changed beside the audit; of handoffs the ids, as one that was accepted changes by itself."""
    lists = ("guidance", "breakers", "handoffs", "insights", "keys", "runs", "sessions", "workflows")
    kept = {one: json.loads(_ask(f"{stage.url}/v1/{one}", Authorization=f"Bearer {TOKEN}")[2]) for one in lists}
    return kept | {"handoffs": [one["id"] for one in kept["handoffs"]["items"]]}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_page_of_another_site_changes_and_reads_nothing(stage, new_page, evil, attack):
    """The tab beside it is signed in: what the browser would send along by itself, it would send here."""
    handed = stage.hand_off("away", "dig", "what no page may accept, answer or cancel")
    context_page = new_page()
    sign_in(context_page, stage)
    page = context_page.context.new_page()
    page.goto(evil)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    before = json.loads(_ask(f"{stage.url}/v1/audit?limit=1000", **bearer)[2])["items"]
    kept, pending = _kept(stage), stage.handoff(handed)
    described = json.loads(_ask(f"{stage.url}/openapi.json")[2])["paths"]
    changing = [one.replace("{", "").replace("}", "") for one, said in described.items() if said.keys() & {"post", "put"}]
    assert len(changing) > 20
    for path in (*changing, "/v1/me"):
        told = page.evaluate(ATTACKS[attack], f"{stage.url}{path}")
        assert told != "loaded"
    assert _kept(stage) == kept
    assert stage.handoff(handed) == pending
    after = json.loads(_ask(f"{stage.url}/v1/audit?limit=1000", **bearer)[2])["items"]
    known = {one["id"] for one in before}
    assert {one["kind"] for one in after if one["id"] not in known} <= {"refused"}  # nothing was admitted
    assert "mallory" not in json.dumps(after)
    framed = page.evaluate(
        """(url) => new Promise((done) => { const f = document.createElement('iframe'); f.onload = () => { let seen = 'blocked';
            try { seen = f.contentWindow.document.body.innerHTML; } catch {} done(seen); }; f.src = url; document.body.append(f); })""",
        f"{stage.url}/console/",
    )
    assert framed in {"blocked", ""}
    assert not any("console" in frame.url for frame in page.frames)
    read = page.evaluate("(url) => fetch(url + '/v1/me').then((r) => r.text(), () => 'refused')", stage.url)
    assert read == "refused"


def test_a_name_that_was_rebound_to_this_machine_reaches_nothing(stage, browser):
    """The attacker's name leads to loopback, so the page is of the same origin as the server it asks."""
    context = browser.new_context()
    try:
        page = context.new_page()
        port = stage.url.rpartition(":")[2]
        answer = page.goto(f"http://evil.localhost:{port}/console/")  # a name of its own that the browser resolves to loopback
        assert answer is not None
        assert answer.status == 421
        for path, method in (("/v1/me", "GET"), ("/v1/calls", "POST"), ("/v1/session", "POST")):
            told = page.evaluate(
                "([p, m]) => fetch(p, {method: m, headers: {'Content-Type': 'application/json'}, body: m === 'POST' ? '{}' : undefined}).then((r) => r.status)",
                [path, method],
            )
            assert told == 421
    finally:
        context.close()


def _offered(page, filled, token):
    """Return what the buttons of every view offer to the owner of a token that is pasted at signing in."""
    page.goto(f"{filled.url}/console/")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation", name="Views").wait_for()
    offered = set()
    for view in _places(filled):
        _open(page, filled, view)
        offered |= {one.strip() for one in page.locator("main button").all_inner_texts()}
    return offered


def test_a_viewer_sees_and_may_not_act(filled, new_page):
    token = filled.user_token("vera", "viewer")
    page = new_page()
    acts = _offered(new_page(), filled, TOKEN) - _offered(page, filled, token)
    assert acts >= {
        "Grant",
        "Deny",
        "Erase",
        "Export",
        "Verify",
        "Run",
        "Dry run",
        "Send",
        "Save",
        "Cancel",
        "Fork here",
        "Start",
    }
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
