"""Which hosts a server answers to, and pages of which origins."""

from __future__ import annotations

import pytest

from comity.errors import CallerError, RefusedError
from comity.server.guard import Guard
from comity.server.settings import Settings


@pytest.mark.parametrize(
    ("port", "certfile", "is_own"), [(80, "", True), (443, "c.pem", True), (443, "", False), (80, "c.pem", False)]
)
def test_a_host_without_a_port_is_this_server_at_the_default_port_of_its_scheme_alone(port, certfile, is_own):
    guard = Guard(Settings(port=port, certfile=certfile, keyfile=certfile), port)
    guard.check_host(b"localhost:%d" % port)
    if is_own:
        guard.check_host(b"localhost")
        return
    with pytest.raises(CallerError, match="this server is not 'localhost'"):
        guard.check_host(b"localhost")


OWN, ALLOWED = b"http://localhost:8080", b"https://desk.example"


@pytest.mark.parametrize(
    ("origin", "site", "is_page", "passes"),
    [
        (None, None, False, True),  # no browser
        (OWN, b"same-origin", False, True),
        (ALLOWED, b"cross-site", False, True),
        (OWN, b"cross-site", False, False),
        (None, b"cross-site", False, False),
        (None, b"cross-site", True, True),  # a link to the console
        (b"https://evil.example", None, False, False),
        (b"https://evil.example", b"cross-site", True, False),
    ],
)
def test_a_page_of_another_site_passes_only_where_its_origin_was_allowed_by_name(origin, site, is_page, passes):
    guard = Guard(Settings(port=8080, allow_origins=("https://desk.example/",)), 8080)
    if passes:
        guard.check_origin(origin, site, is_page=is_page)
    else:
        with pytest.raises(RefusedError, match="pages of another"):
            guard.check_origin(origin, site, is_page=is_page)
    allowed = ((b"access-control-allow-origin", ALLOWED), (b"vary", b"origin"))
    assert guard.cors(origin) == (allowed if origin == ALLOWED else ())


def test_a_public_name_is_this_server_with_its_port_and_without_and_one_that_names_a_port_only_so():
    guard = Guard(Settings(port=8080, public_hosts=("Desk.example", "api.example:8443")), 8080)
    for host in (b"desk.example", b"DESK.example:8080", b"api.example:8443", b"127.0.0.1:8080"):
        guard.check_host(host)
    for host in (b"api.example", b"api.example:8443:8080", b"desk.example:80", b"evil.example"):
        with pytest.raises(CallerError):
            guard.check_host(host)


EVERY = ("0.0.0.0", "::")  # noqa: S104  compared, not bound


@pytest.mark.parametrize(("host", "is_own"), [("desk.local", True), *((one, False) for one in EVERY), ("127.0.0.1", False)])
def test_the_host_that_a_server_is_bound_to_is_its_name_unless_it_is_every_address(host, is_own):
    guard = Guard(Settings(host=host, port=8080, certfile="c.pem", keyfile="c.pem"), 8080)
    guard.check_host(b"127.0.0.1:8080")
    for name in (b"desk.local:8080", host.encode() + b":8080"):
        if is_own or name == b"127.0.0.1:8080":
            guard.check_host(name)
        else:
            with pytest.raises(CallerError):
                guard.check_host(name)
