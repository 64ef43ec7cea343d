"""Signing in: by the printed link, by a token, and what happens to a code that was used."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.console.conftest import sign_in
from tests.console.stage import TOKEN


def test_the_printed_link_signs_in_once_and_the_code_leaves_the_address(stage, new_page):
    link = stage.link()
    page = new_page()
    page.goto(link)
    page.get_by_role("navigation", name="Views").wait_for()
    assert "code=" not in page.url
    assert page.context.cookies() == []
    other = new_page()
    other.goto(link)
    expect(other.get_by_role("alert")).to_contain_text("used")
    expect(other.get_by_label("Token")).to_be_visible()


def test_a_token_signs_in_and_stays_in_the_tab(stage, new_page):
    page = new_page()
    page.goto(f"{stage.url}/console/")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation", name="Views").wait_for()
    page.reload()
    page.get_by_role("navigation", name="Views").wait_for()
    tab = page.context.new_page()
    tab.goto(f"{stage.url}/console/")
    expect(tab.get_by_label("Token")).to_be_visible()


def test_signing_out_forgets_the_token(stage, new_page):
    page = new_page()
    sign_in(page, stage)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
