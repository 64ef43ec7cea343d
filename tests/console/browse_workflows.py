"""Workflows as a person uses them: start, answer a pause, replay, fork."""

from __future__ import annotations

import re

from playwright.sync_api import expect


def test_a_paused_run_is_answered_replayed_and_forked(page, stage):
    page.goto(f"{stage.url}/console/#/workflows?tab=definitions&name=publish")
    page.get_by_label("input, JSON").fill('{"about": "bees"}')
    page.get_by_role("button", name="Start").click()
    question = page.get_by_role("form", name="Question")
    expect(question).to_contain_text("Publish 3 lines about bees?")
    question.get_by_role("button", name="yes").click()
    expect(page.locator(".bar").get_by_text("completed")).to_be_visible()
    graph = page.get_by_role("group", name="Graph of publish")
    expect(graph.get_by_role("link", name=re.compile("^publish.*success"))).to_be_visible()
    graph.get_by_role("link", name=re.compile("^publish.*success")).click()
    expect(page.get_by_role("region", name="Step")).to_contain_text('path: "docs/bees.md"')  # what the step was given
    expect(page.get_by_role("region", name="Step")).to_contain_text("bytes: 0")  # and what it answered
    page.go_back()
    first = page.url

    page.get_by_label("Replay: event").focus()
    page.keyboard.press("Home")
    expect(page.get_by_text("event 1 of", exact=False)).to_be_visible()
    expect(graph.get_by_role("link", name=re.compile("^publish.*success"))).to_have_count(0)
    page.get_by_role("button", name="Fork here").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill('{"about": "ants"}')
    dialog.get_by_role("button", name="Fork").click()
    question = page.get_by_role("form", name="Question")
    expect(question).to_contain_text("about ants?")
    assert page.url != first
    question.get_by_role("button", name="no").click()  # the fork goes another way than the run it came from
    expect(page.locator(".bar").get_by_text("completed")).to_be_visible()
    expect(page.get_by_role("region", name="Step")).to_contain_text("dropped: true")
    expect(graph.get_by_role("link", name=re.compile("^publish.*success"))).to_have_count(0)
    page.goto(first)
    expect(graph.get_by_role("link", name=re.compile("^publish.*success"))).to_be_visible()


def test_mistakes_of_a_definition_are_named_with_their_line(page, stage):
    page.goto(f"{stage.url}/console/#/workflows?tab=check")
    page.get_by_label("A definition, YAML or JSON").fill("workflow: x\nnodes:\n  a: {call: NOBODY/NOTHING}\n")
    expect(page.get_by_text("line 3", exact=False).first).to_be_visible()
