"""Which nodes may cancel a call that they asked for, and which session a node forgets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from comity import Limits, Reply, Status
from comity.core.call.ledger import Account, Loan
from comity.core.envelope.envelope import Error
from comity.core.envelope.usage import Usage
from comity.core.journal.terms import Fence
from comity.errors import CallChangedError, UnavailableError
from comity.runtime.call.errand import Errand
from comity.runtime.call.way import Way
from comity.runtime.cluster.errands import Errands
from comity.runtime.cluster.outbound import Carrier, _give_back, _learn, disown
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


def reply(status: str, calls: int = 0, tokens: int = 0) -> Reply:
    told = Reply.success(1) if status == "success" else Reply(status=Status(status), error=Error.of("TARGET_FAILED", "no"))
    return replace(told, usage=Usage(calls=calls, prompt_tokens=tokens))


@pytest.mark.parametrize(
    ("loan", "spent", "calls", "tokens"),
    [
        (None, None, 0, 0),
        (None, reply("success", 1, 1), 0, 0),
        (Loan(4, 40), None, 5, 40),  # it moves, and is counted anew where it goes
        (Loan(4), None, 5, 0),
        (Loan(4, 40), reply("success"), 4, 40),
        (Loan(4, 40), reply("success", 3, 30), 1, 10),
        (Loan(4, 40), reply("error", 3, 50), 1, -10),
        (Loan(4, 40), reply("refused"), 5, 40),  # it never ran
    ],
)
def test_what_was_set_aside_for_a_call_and_not_spent_comes_back_once(loan, spent, calls, tokens):
    account, way = Account(Limits(calls_max=100), None, 50, 500), Way(loan=loan)
    call = SimpleNamespace(account=account)
    for _ in range(2):
        _give_back(call, way, spent)
        assert (50 - account.calls_used, 500 - account.tokens_used, way.loan) == (calls, tokens, None)


@pytest.mark.parametrize("has_parent", [True, False])
def test_the_end_that_the_store_has_of_a_call_is_its_reply_and_counts_for_its_caller(has_parent):
    used: list[Usage] = []
    parent = SimpleNamespace(calls_below=2, use_tokens=used.append) if has_parent else None
    call = SimpleNamespace(reply=None, parent=parent, account=Account(Limits(calls_max=100), None, 50))
    ended = reply("success", 3, 30)
    _learn(call, Way(loan=Loan(4)), ended)
    assert (call.reply, call.account.calls_used) == (ended, 49)
    if parent is not None:
        assert (parent.calls_below, used) == (5, [ended.usage])


def errand(request_id: str) -> Errand:
    return Errand(SimpleNamespace(request=SimpleNamespace(request_id=request_id)), None)


def test_a_call_is_wanted_while_any_caller_waits_and_every_one_of_them_hears_who_does_not_have_it():
    errands, one, two, other = Errands(), errand("r"), errand("r"), errand("q")
    for each in (one, two, other):
        errands.begin(each)
    errands.without(one.arrival.request, "n2")
    errands.without(SimpleNamespace(request_id="gone"), "n3")
    assert (one.without, two.without, other.without) == (["n2"], ["n2"], [])
    errands.end(one)
    assert (sorted(errands), errands.is_wanted("r")) == (["q", "r"], True)
    errands.end(two)
    assert (sorted(errands), errands.is_wanted("r"), errands.is_wanted("q")) == (["q"], False, True)


class GivingUp:
    """The caller's side of a call that is given up, with what the store says of it and what is done then."""

    def __init__(self, stored: object) -> None:
        self.done: list[tuple[object, ...]] = []
        self._path = SimpleNamespace(settlement=SimpleNamespace(deliver=lambda *told: self.done.append(("deliver", *told))))
        self._peers = SimpleNamespace(journal=SimpleNamespace(call=self._read, node_id="n1", failure=None, append=self._append))
        self._stored = stored

    def _read(self, _request_id: str) -> object:
        if isinstance(self._stored, Exception):
            raise self._stored
        return self._stored

    def _append(self, *_: object) -> None:
        self.done.append(("append",))

    def _give_up(self, *told: object) -> None:
        self.done.append(("give up", *told))

    def _look_again(self, call: object, unreadable: Exception, _look: object, reads: int) -> None:
        self.done.append(("look again", call, unreadable, reads))

    _never_begun, _given_up = Carrier._never_begun, Carrier._given_up


UNREADABLE, FAILED, CHANGED = UnavailableError("unread"), UnavailableError("unwritten"), CallChangedError("it ended")
ENDED = SimpleNamespace(settled_at=5, reply=reply("success", 3, 30))
OPEN = SimpleNamespace(settled_at=None, reply=None)


@pytest.mark.parametrize(
    ("take", "stored", "error", "done"),
    [
        (Carrier._never_begun, None, None, ("deliver", "call", None)),
        (Carrier._never_begun, None, FAILED, ("deliver", "call", FAILED)),
        (Carrier._never_begun, None, CHANGED, ("deliver", "call", None)),
        (Carrier._never_begun, OPEN, CHANGED, ("give up", "call", "way", "end", [])),
        (Carrier._never_begun, UNREADABLE, CHANGED, ("look again", "call", UNREADABLE, 7)),
        (Carrier._given_up, None, None, ("deliver", "call", None)),
        (Carrier._given_up, None, FAILED, ("deliver", "call", FAILED)),
        (Carrier._given_up, OPEN, CHANGED, ("give up", "call", "way", "end", [])),
        (Carrier._given_up, UNREADABLE, CHANGED, ("look again", "call", UNREADABLE, 7)),
    ],
)
def test_the_waiters_of_a_call_that_is_given_up_get_what_the_store_says(take, stored, error, done):
    carrier, end = GivingUp(stored), SimpleNamespace(request=SimpleNamespace(request_id="r", parent_id=None))
    take(carrier, "call", "way", end, [], error, 7)
    assert carrier.done == [tuple(end if one == "end" else one for one in done)]


def test_the_end_in_the_store_is_the_reply_of_a_call_that_was_given_up():
    carrier, way = GivingUp(ENDED), Way(loan=Loan(4))
    call = SimpleNamespace(reply=None, parent=None, account=Account(Limits(calls_max=100), None, 50))
    Carrier._given_up(carrier, call, way, SimpleNamespace(request=SimpleNamespace(request_id="r")), [], CHANGED)
    assert (carrier.done, call.reply, call.account.calls_used) == ([("deliver", call, None)], ENDED.reply, 49)
