"""Which hosts a server answers to."""

from __future__ import annotations

import pytest

from comity.errors import CallerError
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
