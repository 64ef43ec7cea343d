"""Which nodes may cancel a call that they asked for, and which session a node forgets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from comity.core.journal.terms import Fence
from comity.runtime.cluster.outbound import disown
from comity.runtime.cluster.served import Served


def served(*asks: tuple[str, int | None]) -> Served:
    one = Served()
    for asker, token in asks:
        one.note(asker, None if token is None else Fence("ORC", token))
    return one


def test_only_a_node_that_asked_may_cancel_and_a_former_holder_of_the_caller_may_not():
    users = served(("n1", None))
    assert (users.may_cancel("n1"), users.may_cancel("n2")) == (True, False)
    moved = served(("n1", 3), ("n2", 4))
    assert (moved.may_cancel("n1"), moved.may_cancel("n2"), moved.may_cancel("n3")) == (False, True, False)
    assert served(("n2", 4), ("n1", 3)).may_cancel("n1") is False
    assert served(("n1", 3), ("n2", 4), ("n1", 5)).may_cancel("n1") is True


def test_the_newest_token_is_the_callers_and_the_last_asker_is_answered():
    one = served(("n1", 3), ("n2", 5), ("n1", 4))
    assert (one.caller, one.asker) == (Fence("ORC", 5), "n1")
    assert served(("n1", None)).caller is None


def test_a_call_under_way_is_written_under_the_newest_token_of_its_caller():
    one = served(("n1", 3))
    one.call = SimpleNamespace(way=SimpleNamespace(caller=one.caller))
    for token, newest in ((2, 3), (4, 4)):
        one.note("n2", Fence("ORC", token))
        assert one.call.way.caller == Fence("ORC", newest)


def test_a_node_that_only_inquires_may_cancel_a_users_call_and_no_agents():
    users, agents, known = served(("n1", None)), served(("n1", 3)), served(("n1", 3))
    users.note_inquiry("n2")
    agents.note_inquiry("n2")
    known.note_inquiry("n1")
    assert (users.may_cancel("n2"), agents.may_cancel("n2"), known.may_cancel("n1")) == (True, False, True)
    assert (users.asker, agents.asker) == ("n2", "n2")


@pytest.mark.parametrize(("owner", "forgotten"), [("ann", [("acme", "s")]), ("bob", []), (None, [])])
def test_a_session_that_another_user_named_first_is_forgotten_by_the_node_that_began_it(owner, forgotten):
    dropped: list[tuple[str, str]] = []
    path = SimpleNamespace(sessions=SimpleNamespace(drop=lambda *key: dropped.append(key)))
    live = None if owner is None else SimpleNamespace(session=SimpleNamespace(user_id=owner))
    disown(path, SimpleNamespace(request=SimpleNamespace(tenant_id="acme", session_id="s", user_id="ann"), live=live))
    assert dropped == forgotten
