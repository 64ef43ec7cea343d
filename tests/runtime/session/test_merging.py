"""Sessions that two nodes write at once: whatever is read and refused in between, nothing that was said is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Request
from comity.core.journal.records import Document, Record, Saved
from comity.core.journal.terms import Fence, Terms, claim
from comity.core.session.session import Answer, Say
from comity.engines.cipher import KEY_BYTES, Cipher
from comity.engines.clock import SystemClock, SystemIds
from comity.engines.memory.cluster import SharedJournal
from comity.engines.memory.journal import MemoryJournal
from comity.ports import Then
from comity.runtime.session.sessions import Sessions


class Held(SharedJournal):
    """A journal whose appends wait until they are let go, in order, as those of a writer's thread do."""

    def __init__(self, shared: MemoryJournal, node_id: str) -> None:
        super().__init__(shared, node_id)
        self._waiting: list[Callable[[], None]] = []
        self._unreported: list[Callable[[], None]] = []

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        def later(error: Exception | None) -> None:
            if then is not None:
                self._unreported.append(lambda: then(error))

        self._waiting.append(lambda: SharedJournal.append(self, records, later, terms))

    def report(self) -> None:
        """Tell what became of what was written."""
        unreported, self._unreported = self._unreported, []
        for one in unreported:
            one()

    def write(self) -> None:
        """Write what waits; what is appended meanwhile waits for the next time."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one()

    def die(self) -> None:
        """Lose what waits to be written or reported, as a process that is killed does."""
        self._waiting, self._unreported = [], []

    @property
    def has_more(self) -> bool:
        return bool(self._waiting or self._unreported)


class Pair:
    """Two nodes with one session."""

    def __init__(self) -> None:
        store = MemoryJournal()
        self.journals = Held(store, "n1"), Held(store, "n2")
        self.nodes = [self._node(one) for one in self.journals]
        first = self.nodes[0].begin("t", "u", "s", 0)
        self.nodes[0].append(self.nodes[0].saved(first))
        self.journals[0].write()
        self.journals[0].report()

    @staticmethod
    def _node(journal: Held) -> Sessions:
        sessions = Sessions(journal, SystemClock(), SystemIds(), Cipher(b"k" * KEY_BYTES), {})
        sessions.share()
        return sessions

    def restart(self, at: int) -> None:
        """Kill a node and start it anew."""
        self.journals[at].die()
        self.nodes[at] = self._node(self.journals[at])

    def say(self, at: int, text: str) -> None:
        sessions = self.nodes[at]
        live = sessions.find("t", "s")
        assert live is not None
        sessions.change(live, Say("user", text, request_id=f"r{text}"), based_on=live.session.version)

    def end(self, at: int, text: str) -> None:
        """End a call whose agent is held under a token: its answer and a mark of its end in one append."""
        sessions = self.nodes[at]
        live = sessions.find("t", "s")
        assert live is not None
        answer = Answer("A", said=(Say("A", text, request_id=f"r{text}"),))
        records = (*sessions.changed(live, answer), Saved(Document.USE, f"end {text}", 1, b""))
        sessions.append(records, lambda _: None, Terms(fences=(Fence(f"A/{text}", 1),)))

    def steal(self, text: str) -> None:
        """Give the agent of a call to another node."""
        self.journals[0]._shared.append((claim(Fence(f"A/{text}", 2), "n3"),))

    def ended(self, text: str) -> bool:
        """Return whether the store took the end of a call."""
        return self.journals[0]._shared.load(Document.USE, f"end {text}") is not None

    def use(self, at: int) -> None:
        assert self.nodes[at].find("t", "s") is not None

    def told(self) -> list[str]:
        """Return what the store has once everything is written."""
        for _ in range(100):
            for journal in self.journals:
                journal.write()
                journal.report()
        assert not any(journal.has_more for journal in self.journals)
        reader = Sessions(
            SharedJournal(self.journals[0]._shared, "n3"), SystemClock(), SystemIds(), Cipher(b"k" * KEY_BYTES), {}
        )
        live = reader.find("t", "s")
        assert live is not None
        return sorted(turn.text for turn in live.session.turns)


def test_what_was_said_is_kept_though_a_call_reads_the_session_before_the_store_refuses_it() -> None:
    pair = Pair()
    pair.use(1)
    pair.say(0, "a")
    pair.say(1, "b")
    pair.journals[1].write()
    pair.use(0)  # reads what the other node wrote, and writes nothing
    assert pair.told() == ["a", "b"]


def test_a_session_is_settled_once_the_store_has_told_what_became_of_each_change() -> None:
    pair = Pair()
    live = pair.nodes[0].find("t", "s")
    assert live is not None
    for change in (pair.say, pair.end):
        assert live.standing.is_settled
        change(0, change.__name__)
        assert not live.standing.is_settled
        pair.journals[0].write()
        assert not live.standing.is_settled
        pair.journals[0].report()
    assert live.standing.is_settled
    pair.say(0, "mine")
    pair.say(1, "theirs")  # of two nodes at once: one is refused, and repeated
    assert pair.told() == ["end", "mine", "say", "theirs"]
    assert live.standing.is_settled


def test_what_was_said_stands_once_though_the_session_is_read_before_its_write_is_reported() -> None:
    pair = Pair()
    pair.use(1)
    pair.say(0, "a")
    pair.journals[0].write()
    pair.say(1, "b")  # on top of it
    pair.journals[1].write()
    pair.say(0, "c")  # reads both, and has not heard yet that its own is there
    assert pair.told() == ["a", "b", "c"]


def test_what_two_nodes_heard_by_one_call_stands_once_though_each_hides_it_under_names_of_its_own() -> None:
    pair = Pair()
    for at, text in enumerate(("I am [NAME_1]", "I am [NAME_2]")):
        live = pair.nodes[at].find("t", "s")
        assert live is not None
        request = Request("r", "A", "C", "u", Limits(), 1, root_id="r", session_id="s", message=text)
        pair.nodes[at].hear(live, request, is_again=False, is_fresh=False)
    assert pair.told() == ["I am [NAME_1]"]


def test_an_answer_is_written_with_the_end_of_its_call_and_with_no_other_document() -> None:
    pair = Pair()
    pair.use(1)
    pair.end(0, "a")
    pair.say(1, "b")
    pair.journals[1].write()
    pair.journals[0].write()  # refused: the other node was first
    pair.say(0, "c")  # reads the session anew, in which the answer is shown
    pair.journals[0].write()
    pair.journals[0].die()  # before the end of the call was appended again
    assert not pair.ended("a")
    assert pair.told() == ["b", "c"]


def test_what_a_user_said_is_in_the_store_when_the_answer_is() -> None:
    pair = Pair()
    pair.use(1)
    pair.say(0, "a")
    pair.say(1, "b")
    pair.journals[1].write()
    pair.use(0)  # reads the session anew, before the store has refused what was said
    pair.end(0, "c")
    pair.journals[0].write()
    pair.journals[0].die()
    assert pair.ended("c")
    assert pair.told() == ["a", "b", "c"]


def test_the_answer_of_a_refused_end_stands_in_no_session() -> None:
    pair = Pair()
    pair.use(1)
    pair.end(0, "a")
    pair.end(0, "b")
    pair.say(1, "c")
    pair.journals[1].write()
    pair.steal("b")
    assert pair.told() == ["a", "c"]
    assert (pair.ended("a"), pair.ended("b")) == (True, False)


@given(
    st.lists(
        st.tuples(st.sampled_from(["say", "end", "steal", "use", "write", "report", "die"]), st.integers(0, 1)), max_size=40
    )
)
def test_an_answer_stands_once_in_its_session_if_its_call_has_ended_and_never_else(steps: list[tuple[str, int]]) -> None:
    pair, ends, said, before = Pair(), list[str](), ([], []), dict[str, list[str]]()  # type: ignore[var-annotated]
    for number, (what, at) in enumerate(steps):
        if what == "say":
            said[at].append(f"{number:02}" + "x" * (number % 2 * 3_000))
            pair.say(at, said[at][-1])
        elif what == "end":
            ends.append(f"{number:02}" + "y" * (number % 3 * 3_000))
            before[ends[-1]] = list(said[at])
            pair.end(at, ends[-1])
        elif what == "steal" and ends:
            pair.steal(ends[-1])
        elif what == "use":
            pair.use(at)
        elif what == "write":
            pair.journals[at].write()
        elif what == "report":
            pair.journals[at].report()
        elif what == "die":
            pair.restart(at)
            said[at].clear()
    told = pair.told()
    assert [told.count(one) for one in ends] == [int(pair.ended(one)) for one in ends]
    assert {told.count(one) for end in ends if pair.ended(end) for one in before[end]} <= {1}


@given(st.lists(st.tuples(st.sampled_from(["say", "use", "write", "report"]), st.integers(0, 1)), max_size=30))
def test_whatever_two_nodes_do_in_whichever_order_everything_that_was_said_is_kept_once(steps: list[tuple[str, int]]) -> None:
    pair, said = Pair(), list[str]()
    for number, (what, at) in enumerate(steps):
        if what == "say":
            said.append(f"{number:02}" + "x" * (number % 2 * 3_000))  # two long ones do not fit a head
            pair.say(at, said[-1])
        elif what == "use":
            pair.use(at)
        elif what == "write":
            pair.journals[at].write()
        else:
            pair.journals[at].report()
    assert pair.told() == said
    lives = [live for sessions in pair.nodes for live in sessions._live.values()]
    assert [live.standing._on_its_way for live in lives] == [{}] * len(lives)  # else every save stays in memory
