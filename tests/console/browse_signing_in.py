"""Signing in: by the printed link, by a token, and what happens to a code that was used."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
import urllib.parse

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.sync_api import expect
from tests.console.conftest import sign_in
from tests.console.stage import TOKEN, Stage


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


def test_a_link_that_is_opened_where_the_console_already_stands_signs_in(stage, new_page):
    page = new_page()
    page.goto(f"{stage.url}/console/")
    page.get_by_label("Token").wait_for()
    page.goto(stage.link())  # changes the address, and loads nothing
    page.get_by_role("navigation", name="Views").wait_for()
    assert "code=" not in page.url


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


class Provider(http.server.BaseHTTPRequestHandler):
    """A provider of OpenID Connect that signs everybody in as eve, an operator."""

    key = Ed25519PrivateKey.generate()
    nonce = ""

    def do_GET(self) -> None:
        url = f"http://127.0.0.1:{self.server.server_port}"
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        if path == "/authorize":
            type(self).nonce = asked["nonce"]
            back = urllib.parse.urlencode({"code": "granted", "state": asked["state"]})
            self.send_response(302)
            self.send_header("Location", f"{asked['redirect_uri']}?{back}")
            self.end_headers()
            return
        ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
        public = json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(self.key.public_key())) | {"kid": "k1", "use": "sig"}
        self._tell(
            {"keys": [public]} if path == "/jwks" else {"issuer": url} | {name: f"{url}/{end}" for name, end in ends.items()}
        )

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        now, url = int(time.time()), f"http://127.0.0.1:{self.server.server_port}"
        claims = {"iss": url, "aud": "comity", "iat": now, "exp": now + 60, "nonce": self.nonce, "sub": "eve"}
        token = jwt.encode(claims | {"comity_roles": ["operator"]}, self.key, algorithm="EdDSA", headers={"kid": "k1"})
        self._tell({"id_token": token})

    def _tell(self, document: dict) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_: object) -> None:
        pass


def test_the_button_of_the_provider_signs_in_with_its_roles(new_page, tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as provider, socket.socket() as probe:
        threading.Thread(target=provider.serve_forever, daemon=True).start()
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        oidc = {
            "issuer": f"http://127.0.0.1:{provider.server_port}", "client_id": "comity",
            "redirect_url": f"http://127.0.0.1:{port}/v1/signin/callback",
        }  # fmt: skip
        with Stage(tmp_path, port, oidc=oidc) as stage:
            page = new_page()
            page.goto(f"{stage.url}/console/")
            page.get_by_role("button", name="Sign in with 127.0.0.1").click()
            page.get_by_role("navigation", name="Views").wait_for()
            expect(page.locator(".rail-foot")).to_contain_text("eve")
            assert "signin" not in page.url
        provider.shutdown()


def test_signing_out_forgets_the_token(stage, new_page):
    page = new_page()
    sign_in(page, stage)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()
