"""`comity demo` does the main job, shows a refused loop and a tripped breaker, and what it suggests next works."""

import os
import pty
import re
import shlex
import sys

import warm

from comity.core.agent.breaker import Policy


def test_the_demo_as_json_sums_up_the_three_acts(comity, place):
    ran = comity("demo", "--json")
    assert ran.code == 0
    document = ran.document
    assert document["case"]["status"] == "success"
    npvs = {one["name"]: one["npv"] for one in document["case"]["data"]["scenarios"]}
    assert npvs["base"] == 17_206.82
    assert npvs["conservative"] < npvs["base"] < npvs["aggressive"]
    assert document["cycle"]["status"] == "partial"
    assert document["breaker"]["failures"] == Policy().failures_max
    assert document["breaker"]["turned_away"]["error"]["code"] == "CAPABILITY_UNAVAILABLE"
    assert 0 < document["breaker"]["turned_away"]["error"]["retry_after_ms"] <= Policy().open_ms
    assert document["breaker"]["fallback"]["degraded"]
    assert document["store"] == str(place / "comity.db")
    assert document["seconds"] < 20
    assert "17,206.82" in (place / "business-case.md").read_text(encoding="utf-8")


def test_without_a_terminal_the_demo_tells_its_story_in_plain_lines(comity, place):
    ran = comity("demo")
    assert ran.code == 0
    assert ran.err == ""
    assert "\x1b" not in ran.out
    assert "ms  ANL ANL_MONTE_CARLO  success" in ran.out
    assert "refused ROUTING_CYCLE_DETECTED: CST is already in CST → ANL" in ran.out
    assert "refused  CAPABILITY_UNAVAILABLE  retry_after_ms=" in ran.out
    assert "degraded" in ran.out
    assert "base          NPV   17,206.82   IRR  18.9%   payback 2.9 years" in ran.out
    assert str(place / "business-case.md") in ran.out


def test_every_next_step_the_demo_names_works(comity, place):
    ran = comity("demo", "--store", "my demo.db", "--out", "out/case.md")
    steps = [line.partition("#")[0].strip() for line in ran.out.splitlines() if line.startswith("  comity ")]
    assert len(steps) == 4
    for step in steps:
        again = comity(*shlex.split(step)[1:])
        assert again.code == 0, step
    shown = comity(*shlex.split(steps[0])[1:], "--json").document
    assert len(shown["calls"][0]["children"]) == 12  # CST, nine figures and a simulation by ANL, DOC
    assert (place / "out" / "case.md").is_file()


def test_the_seed_decides_the_simulation(comity):
    outlooks = [comity("demo", "--json", "--seed", seed).document["case"]["data"]["outlook"] for seed in ("1", "1", "2")]
    assert outlooks[0] == outlooks[1]
    assert outlooks[0] != outlooks[2]


def test_a_file_of_the_users_own_is_not_overwritten(comity, place):
    (place / "business-case.md").write_text("mine", encoding="utf-8")
    ran = comity("demo")
    assert ran.code == 1
    assert "is not a document of this demo; name another file" in ran.err
    assert (place / "business-case.md").read_text(encoding="utf-8") == "mine"
    again = comity("demo", "--json")
    assert (again.code, again.document["exit_code"]) == (1, 1)
    assert "cycle" not in again.document


def test_the_demo_adds_to_a_store_that_has_other_calls(comity, used):
    assert comity("demo").code == 0
    assert comity("audit", "verify").code == 0
    found = {call["request_id"] for call in comity("calls", "--json", "--limit", "50").document["calls"]}
    assert "job-1" in found


def on_a_terminal(*arguments):
    """Run a command in a pseudo terminal and return what it wrote there."""
    main_end, terminal = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "CI"}} | {
        "TERM": "xterm",
        "COLUMNS": "120",
    }
    command = [sys.executable, "-m", "comity", *arguments]
    with warm.start(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        written = b""
        while True:
            try:
                block = os.read(main_end, 65536)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            written += block
        process.wait()
    os.close(main_end)
    return process.returncode, written.decode()


def without_styles(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_on_a_terminal_the_tree_is_drawn_live_and_stays(place):
    code, written = on_a_terminal("demo")
    assert code == 0
    assert "\x1b[?25l" in written  # the cursor is hidden while the tree is drawn again and again
    assert "├── ANL ANL_MONTE_CARLO" in without_styles(written)
    assert "└── DOC DOC_BUSINESS_CASE" in without_styles(written)
    assert "\x1b[32m" in written


def test_no_color_keeps_the_tree_and_drops_the_colours(place):
    code, written = on_a_terminal("demo", "--no-color")
    assert code == 0
    assert "├── ANL ANL_MONTE_CARLO" in without_styles(written)
    assert "\x1b[32m" not in written


def test_on_a_terminal_a_call_is_watched_beside_its_result(comity, app):
    code, written = on_a_terminal("call", "BOSS", "ASK")
    assert code == 0
    assert "├── WORK GREET" in without_styles(written)
    assert "comity show " in without_styles(written).splitlines()[-1]
