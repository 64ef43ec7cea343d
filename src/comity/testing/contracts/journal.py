"""What every journal must do, as one suite. A test module subclasses `JournalContract` once for each journal it has."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from comity.core.envelope.envelope import Reply, Status
from comity.core.journal.records import Accepted, Document, Saved, Settled, StoredState, below, part_key, state_key
from comity.core.journal.terms import Bound, Fence, Terms, Version, checksum, claim
from comity.errors import CallChangedError, DocumentChangedError, RefusedError, StaleLeaseError
from comity.ports import Journal
from comity.testing.contracts.records import (
    PATIENCE_S,
    accepted,
    breathe,
    late,
    paused,
    refused,
    request,
    run,
    settled,
    written,
)

NONE = type(None)


class JournalContract:
    """Subclasses say how a journal is made."""

    def make(self, folder: Path) -> Journal:
        raise NotImplementedError

    @pytest.fixture
    def journal(self, tmp_path: Path) -> Journal:
        return self.make(tmp_path)

    # --- terms ---

    def test_what_a_former_holder_writes_is_refused_and_the_journal_goes_on(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            old, new = Fence("ANL", 3), Fence("ANL", 4)
            await written(journal, claim(old, "n1"), terms=Terms(fences=(old,)))
            await written(journal, accepted("a"), terms=Terms(fences=(old,)))
            await written(journal, claim(new, "n2"), terms=Terms(fences=(new,)))
            with pytest.raises(StaleLeaseError):
                await written(journal, settled("a"), terms=Terms(fences=(Fence("B", 1), old)))
            with pytest.raises(StaleLeaseError):
                await written(journal, claim(old, "n1"), terms=Terms(fences=(old,)))
            assert [row.kind for row in journal.rows()] == ["admitted"]
            await written(journal, settled("a"), terms=Terms(fences=(new,)))
            assert [row.kind for row in journal.rows()] == ["admitted", "settled"]
            assert journal.failure is None

        run(journal, scenario)

    def test_of_two_documents_made_from_one_version_the_first_stands_and_the_second_is_refused(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            def made_from(version: int, data: bytes = b"") -> Terms:
                return Terms(documents=(Version(Document.SESSION, "k", version, checksum(data) if data else 0),))

            told: list[Exception | None] = []
            for version, data, terms in (
                (1, b"one", made_from(0)),
                (1, b"other", made_from(0)),
                (2, b"two", made_from(1, b"one")),
                (3, b"other three", made_from(2, b"other two")),
                (3, b"three", made_from(2, b"two")),
            ):
                journal.append((Saved(Document.SESSION, "k", version, data),), told.append, terms)
            await written(journal)
            assert [type(one) for one in told] == [NONE, DocumentChangedError, NONE, DocumentChangedError, NONE]
            assert journal.load(Document.SESSION, "k") == (3, b"three")
            with pytest.raises(DocumentChangedError):
                await written(journal, Saved(Document.SESSION, "k", 4, b"late"), terms=made_from(3, b"two"))
            await written(journal, Saved(Document.SESSION, "k", 4, b"four"), terms=made_from(3, b"three"))
            assert journal.load(Document.SESSION, "k") == (4, b"four")

        run(journal, scenario)

    def test_terms_are_checked_in_order_against_appends_that_were_not_written_yet(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            old, new = Fence("ANL", 1), Fence("ANL", 2)
            told: list[Exception | None] = []
            for records, fence in (
                ((claim(old, "n1"),), old),
                ((accepted("a"),), old),
                ((claim(new, "n2"),), new),
                ((settled("a"),), old),
                ((settled("a"),), new),
                ((late("a"),), old),
            ):
                journal.append(
                    records, told.append, Terms(fences=(fence,), open=("a",) if records[0].__class__ is Settled else ())
                )
            await written(journal)
            assert [type(one) for one in told] == [NONE, NONE, NONE, StaleLeaseError, NONE, StaleLeaseError]
            assert [row.kind for row in journal.rows()] == ["admitted", "settled"]

        run(journal, scenario)

    def test_a_call_is_opened_by_one_node_and_ended_once(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"), terms=Terms(unknown="a"))
            for terms in (Terms(unknown="a"), Terms(open=("b",)), Terms(open=("a", "b"))):
                with pytest.raises(CallChangedError):
                    await written(journal, accepted("b"), terms=terms)
            await written(journal, settled("a", 1), terms=Terms(open=("a",), unsettled="a"))
            for terms in (Terms(unknown="a"), Terms(unsettled="a"), Terms(open=("a",))):
                with pytest.raises(CallChangedError):
                    await written(journal, settled("a", 2), terms=terms)
            await written(journal, settled("a", 3), terms=Terms())
            stored = journal.call("a")
            assert stored is not None
            assert stored.reply is not None
            assert stored.reply.data == 1
            assert [row.kind for row in journal.rows()] == ["admitted", "settled"]

        run(journal, scenario)

    def test_calls_begun_below_one_are_counted_and_neither_refusals_nor_tools_nor_other_trees_are(
        self, journal: Journal
    ) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"), accepted("a.1", parent_id="a"), accepted("a.1.1", parent_id="a.1"))
            await written(
                journal, settled("a.1.1", parent_id="a.1"), refused("a.2", parent_id="a"), accepted("a.1#1", parent_id="a.1")
            )
            await written(
                journal, accepted("a.3"), accepted("a.12", parent_id="a"), accepted("ab"), accepted("b.1", parent_id="b")
            )
            assert journal.begun(request("a")) == 3
            assert journal.begun(request("a.1", parent_id="a")) == 1
            assert journal.begun(request("ab")) == 0

        run(journal, scenario)

    def test_a_tree_gets_no_more_calls_than_it_may_have_whatever_else_bears_such_ids(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            def one_more(request_id: str) -> Terms:
                return Terms(unsettled=request_id, open=("a",), within=(Bound("a", "a", 3),))

            await written(
                journal, accepted("a"), accepted("a.9"), refused("a.8", parent_id="a"), accepted("a#1", parent_id="a")
            )
            await written(journal, accepted("a.1", parent_id="a"), terms=one_more("a.1"))
            told: list[Exception | None] = []
            for request_id in ("a.2", "a.3", "a.1"):  # the last was accepted before
                journal.append((accepted(request_id, parent_id="a"),), told.append, one_more(request_id))
            await written(journal, settled("a.1", parent_id="a"))
            assert [type(one) for one in told] == [NONE, RefusedError, NONE]
            with pytest.raises(RefusedError) as refusal:
                await written(journal, accepted("a.3", parent_id="a"), terms=one_more("a.3"))
            assert refusal.value.code == "BUDGET_CALLS_EXHAUSTED"
            assert journal.call("a.3") is None

        run(journal, scenario)

    def test_what_is_late_belongs_to_a_call_that_has_ended(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"))
            for request_id in ("a", "b"):
                with pytest.raises(CallChangedError):
                    await written(journal, late(request_id), terms=Terms(ended=request_id))
            await written(journal, settled("a"))
            await written(journal, late("a"), terms=Terms(ended="a"))
            assert [row.kind for row in journal.rows()] == ["admitted", "settled", "late"]

        run(journal, scenario)

    def test_an_open_call_that_is_accepted_again_on_terms_moves_and_is_recorded_once(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"), accepted("b", created_at=500), accepted("b.1", parent_id="b"))
            assert [call.request_id for call in journal.open_roots()] == ["b", "a"]
            moved = Accepted(replace(request("a"), deadline_at=77_000), 2_000, "node")
            await written(journal, moved, terms=Terms(unsettled="a"))
            stored = journal.call("a")
            assert stored is not None
            assert (stored.deadline_at, stored.node_id) == (77_000, "node")
            await written(journal, settled("a"), paused("b"))
            assert journal.open_roots() == []
            assert [row.kind for row in journal.rows()] == ["admitted"] * 3 + ["settled", "paused"]

        run(journal, scenario)

    def test_ending_a_call_ends_what_is_open_below_it_and_nothing_else(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            ids = ("r.1", "r.1.1", "r.1#1", "r.1.2", "r.10", "r.2")
            await written(journal, accepted("r"), *(accepted(one, parent_id=one.rpartition(".")[0]) for one in ids))
            await written(journal, settled("r.1.2", "kept"))
            journal.append((accepted("r.1.3", parent_id="r.1"), accepted("r.1.4")))  # the last is a root of that name
            end = settled("r.1", 1, parent_id="r")
            await written(journal, end, settled("r.1.1", 2, parent_id="r.1"), terms=Terms(open=("r.1",), ends="r.1"))
            status = {one: _status(journal, one) for one in ("r", *ids, "r.1.3", "r.1.4")}
            assert status == {
                "r": None, "r.1": "success", "r.1.1": "success", "r.1#1": "cancelled", "r.1.2": "success",
                "r.1.3": "cancelled", "r.1.4": None, "r.10": None, "r.2": None,
            }  # fmt: skip
            ended = [row.request_id for row in journal.rows() if row.kind == "settled"]
            assert sorted(ended) == ["r.1", "r.1#1", "r.1.1", "r.1.2", "r.1.3"]
            await written(journal, accepted("q"), accepted("q#1", parent_id="q"))  # what a root itself used
            await written(journal, settled("q"), terms=Terms(open=("q",), ends="q"))
            assert _status(journal, "q#1") == "cancelled"
            assert journal.verify().ok

        run(journal, scenario)

    def test_an_end_of_what_was_never_accepted_is_left_out_unless_it_is_accepted_with_it(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"))
            told: list[Exception | None] = []
            journal.append((accepted("a.1", parent_id="a"),), told.append, Terms(open=("b",)))
            whole = (settled("a.1", parent_id="a"), accepted("a.2", parent_id="a"), settled("a.2", parent_id="a"), settled("a"))
            await written(journal, *whole, terms=Terms(open=("a",), ends="a"))
            assert [type(one) for one in told] == [CallChangedError]
            kinds = [(row.request_id, row.kind) for row in journal.rows()]
            assert kinds == [("a", "admitted"), ("a.2", "admitted"), ("a.2", "settled"), ("a", "settled")]

        run(journal, scenario)

    def test_a_state_saved_under_a_former_token_is_left_out(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, claim(Fence("ANL", 1), "n1"), Saved(Document.STATE, "ANL", 1, b"1", 1))
            await written(journal, claim(Fence("ANL", 2), "n2"), Saved(Document.STATE, "ANL", 2, b"zombie", 1))
            assert journal.load(Document.STATE, "ANL") == (1, b"1")
            await written(journal, Saved(Document.STATE, "ANL", 2, b"2", 2))
            assert journal.load(Document.STATE, "ANL") == (2, b"2")
            key = state_key("acme", "ANL")  # another tenant's, at the same address
            await written(journal, Saved(Document.STATE, key, 1, b"zombie", 1), Saved(Document.STATE, key, 1, b"own", 2))
            assert journal.load(Document.STATE, key) == (1, b"own")

        run(journal, scenario)

    # --- appending ---

    def test_rows_stand_in_the_order_of_their_records(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            journal.append((accepted("a"),))
            journal.append((refused("b"),))
            await written(journal, settled("a"), late("a"))
            rows = journal.rows()
            assert [row.id for row in rows] == [1, 2, 3, 4]
            assert [(row.request_id, row.kind) for row in rows] == [
                ("a", "admitted"), ("b", "refused"), ("a", "settled"), ("a", "late"),
            ]  # fmt: skip

        run(journal, scenario)

    def test_who_waits_is_told_in_order_in_the_loop_and_after_all_he_waits_for_can_be_read(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            told: list[tuple[int, Exception | None, int, int]] = []
            for number in range(40):

                def then(error: Exception | None, number: int = number) -> None:
                    told.append((number, error, threading.get_ident(), len(journal.rows())))

                journal.append((accepted(f"r{number}"), settled(f"r{number}")), then)
            await written(journal)  # nothing of its own: only what came before
            assert [number for number, *_ in told] == list(range(40))
            for number, error, thread, rows in told:
                assert error is None
                assert thread == threading.get_ident()
                assert rows >= 2 * (number + 1)

        run(journal, scenario)

    def test_a_record_nobody_waits_for_is_written_too(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            journal.append((accepted("a"),))
            async with asyncio.timeout(PATIENCE_S):
                while not journal.rows():
                    await breathe()
            assert [row.request_id for row in journal.rows()] == ["a"]

        run(journal, scenario)

    def test_a_journal_is_idle_once_all_that_was_appended_is_written(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            for name in ("a", "b"):
                journal.append((accepted(name),))
                async with asyncio.timeout(PATIENCE_S):
                    while not journal.is_idle:
                        await breathe()
                assert journal.call(name) is not None
                assert not journal.is_awaited

        run(journal, scenario)

    def test_the_node_id_is_the_one_it_was_given(self, journal: Journal) -> None:
        assert journal.node_id == "node"

    # --- calls ---

    def test_an_open_call_is_found_with_its_request_and_a_settled_one_with_its_reply(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a", inputs=b'{"x":1}', created_at=77))
            opened = journal.call("a")
            assert opened is not None
            assert opened.request is not None
            assert (opened.request.inputs, opened.reply, opened.settled_at) == ({"x": 1}, None, None)
            assert (opened.node_id, opened.created_at, opened.deadline_at) == ("node", 77, 30_077)
            assert (opened.user_id, opened.session_id, opened.root_id, opened.parent_id) == ("user-1", "s-1", "a", None)

            await written(journal, settled("a", {"npv": 1.5}, created_at=77))
            ended = journal.call("a")
            assert ended is not None
            assert ended.reply == Reply(status=Status.SUCCESS, data={"npv": 1.5}, confidence=1.0, request_id="a")
            assert (ended.request, ended.settled_at) == (None, 3_000)

        run(journal, scenario)

    def test_data_of_a_reply_is_read_as_values_also_where_it_may_come_as_json(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            data = Raw(b'{"npv":42.0}') if getattr(journal, "keeps_json", False) else {"npv": 42.0}
            await written(journal, accepted("a"), settled("a", data))
            found = journal.call("a")
            assert found is not None
            assert found.reply is not None
            assert found.reply.data == {"npv": 42.0}

        run(journal, scenario)

    def test_a_call_nobody_made_is_not_found(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"))
            assert journal.call("A") is None
            assert journal.call("") is None

        run(journal, scenario)

    @pytest.mark.parametrize("together", [True, False], ids=["in one append", "in appends of their own"])
    def test_what_has_settled_never_changes(self, journal: Journal, together: bool) -> None:
        async def scenario(journal: Journal) -> None:
            records = (accepted("a"), settled("a", 1), late("a", 2), settled("a", 3), accepted("a"), refused("a"))
            for batch in [records] if together else [(record,) for record in records]:
                await written(journal, *batch)
            call = journal.call("a")
            assert call is not None
            assert call.reply is not None
            assert call.reply.data == 1
            assert len(journal.calls(limit=10)) == 1
            assert len(journal.rows()) == len(records)  # what was tried is on record all the same

        run(journal, scenario)

    def test_a_refused_user_may_ask_again_and_a_refused_agent_is_told_the_same_again(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"), refused("a.1", parent_id="a"), refused("b"))
            below = journal.call("a.1")
            assert below is not None
            assert below.reply is not None
            assert (below.reply.status, below.reply.request_id) == (Status.REFUSED, "a.1")
            assert journal.call("b") is None

        run(journal, scenario)

    def test_calls_lists_what_users_asked_newest_first(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            for number in range(6):
                name = f"r{number}"
                journal.append((accepted(name, created_at=number), accepted(f"{name}.1", parent_id=name, created_at=number)))
            await written(journal, settled("r2", created_at=2), settled("r5", created_at=5))
            assert [call.request_id for call in journal.calls(limit=10)] == ["r5", "r4", "r3", "r2", "r1", "r0"]
            assert [call.request_id for call in journal.calls(limit=2)] == ["r5", "r4"]

        run(journal, scenario)

    def test_who_writes_nothing_is_told_when_what_was_written_before_is_durable(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await asyncio.gather(written(journal, refused("a")), written(journal), written(journal))
            assert [row.request_id for row in journal.rows()] == ["a"]

        run(journal, scenario)

    def test_nothing_is_abandoned_in_a_new_journal(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"))
            assert journal.abandoned() == []  # its own calls are not

        run(journal, scenario)

    # --- paused calls ---

    def test_a_paused_call_belongs_to_nobody_until_somebody_takes_the_tree(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"), accepted("a.1", parent_id="a"), accepted("b"))
            await written(journal, paused("a.1", parent_id="a"), paused("a"), paused("b"))
            waiting = journal.call("a")
            assert waiting is not None
            assert waiting.reply is not None
            assert (waiting.state, waiting.reply.status) == (StoredState.PAUSED, Status.NEEDS_INPUT)
            assert waiting.request is not None
            assert journal.abandoned() == []

            assert sorted(call.request_id for call in journal.take_paused("a")) == ["a", "a.1"]
            assert journal.take_paused("a") == []  # the first has it
            taken = journal.call("a")
            assert taken is not None
            assert (taken.node_id, taken.reply) == ("node", None)
            assert taken.request == waiting.request
            await written(journal, settled("a", "done"))
            ended = journal.call("a")
            assert ended is not None
            assert ended.reply is not None
            assert ended.reply.data == "done"
            assert [call.request_id for call in journal.take_paused("b")] == ["b"]

        run(journal, scenario)

    # --- documents ---

    @pytest.mark.parametrize("together", [True, False], ids=["in one append", "in appends of their own"])
    def test_versions_of_a_document_only_go_up(self, journal: Journal, together: bool) -> None:
        async def scenario(journal: Journal) -> None:
            saved = [Saved(Document.STATE, "CART/7", version, b"%d" % index) for index, version in enumerate((2, 1, 5, 4, 5))]
            for batch in [saved] if together else [[one] for one in saved]:
                await written(journal, *batch)
            await written(journal, Saved(Document.STATE, "CART/8", 1, b"other"), Saved(Document.SESSION, "CART/7", 9, b"{}"))
            assert journal.load(Document.STATE, "CART/7") == (5, b"2")
            assert journal.load(Document.STATE, "CART/8") == (1, b"other")
            assert journal.load(Document.STATE, "CART") is None
            assert journal.load(Document.VAULT, "CART/7") is None
            assert journal.list_documents(Document.STATE) == [("CART/7", b"2"), ("CART/8", b"other")]
            assert journal.list_documents(Document.STATE, 1) == [("CART/7", b"2")]
            assert journal.list_documents(Document.VAULT) == []
            assert journal.rows() == []  # a document is no decision

        run(journal, scenario)

    def test_a_document_is_found_as_soon_as_it_was_saved(self, journal: Journal) -> None:
        """Who puts it away and takes it out again at once must not work on from an older one."""

        async def scenario(journal: Journal) -> None:
            for version in range(1, 30):
                journal.append((Saved(Document.STATE, "X", version, b"%d" % version),), lambda _: None)
                assert journal.load(Document.STATE, "X") == (version, b"%d" % version)
                assert journal.list_documents(Document.STATE) == [("X", b"%d" % version)]
                if version % 3 == 0:
                    await asyncio.sleep(0)
            journal.append((Saved(Document.STATE, "X", 7, b"old"),))
            assert journal.load(Document.STATE, "X") == (29, b"29")
            journal.append((Saved(Document.STATE, "Y", 1, b"other"),))
            assert journal.list_documents(Document.STATE, 1) == [("X", b"29")]
            await written(journal)
            assert journal.load(Document.STATE, "X") == (29, b"29")

        run(journal, scenario)

    def test_erasing_a_session_takes_all_of_it_and_nothing_else(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            asked = b'{"tenant_id":"%s","session_id":"%s"}'
            await written(
                journal,
                accepted("mine"),
                settled("mine", "private"),
                accepted("mine.1", parent_id="mine"),
                accepted("theirs", session_id="s-2"),
                settled("says s-1", '"s-1"', session_id="s-2"),
                accepted("far", tenant_id="other"),
                accepted("far ended", tenant_id="other"),
                settled("far ended", tenant_id="other"),
                Saved(Document.SESSION, "default\x1fs-1", 1, b"{}"),
                Saved(Document.USE, "default\x1fs-1", 1, b""),
                Saved(Document.VAULT, "default\x1fs-1", 1, b"{}"),
                Saved(Document.VAULT, "other\x1fs-1", 1, b"{}"),
                Saved(Document.STATE, "default\x1fs-1", 1, b"{}"),
                Saved(Document.APPROVAL, "mine#1", 1, asked % (b"default", b"s-1")),
                Saved(Document.APPROVAL, "theirs#1", 1, asked % (b"default", b"s-2")),
                Saved(Document.APPROVAL, "far#1", 1, asked % (b"other", b"s-1")),
            )
            assert journal.erase("default", "s-1") == 6
            kept = ["theirs", "says s-1", "far", "far ended"]
            assert [name for name in ("mine", "mine.1", *kept) if journal.call(name) is not None] == kept
            assert journal.list_documents(Document.SESSION) == journal.list_documents(Document.USE) == []
            assert [key for key, _ in journal.list_documents(Document.VAULT)] == ["other\x1fs-1"]
            assert [key for key, _ in journal.list_documents(Document.STATE)] == ["default\x1fs-1"]
            assert [key for key, _ in journal.list_documents(Document.APPROVAL)] == ["far#1", "theirs#1"]
            assert journal.verify() == (True, 8, None, "")
            assert journal.erase("default", "s-1") == 0

        run(journal, scenario)

    def test_a_session_is_found_with_its_rows_in_order_and_both_go_with_it(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            def row(key: str, number: int, version: int, data: bytes) -> Saved:
                return Saved(Document.PART, part_key(key, number), version, data)

            mine, theirs = "default\x1fs-1", "default\x1fs-1\x1fresult"  # one key begins with the other
            journal.append((row(mine, 10, 1, b"ten"), row(mine, 2, 1, b"two"), Saved(Document.SESSION, mine, 1, b"{}")))
            assert journal.load_session(mine) == (1, b"{}", [(2, b"two"), (10, b"ten")])
            await written(journal, row(theirs, 1, 1, b"other"), Saved(Document.SESSION, theirs, 1, b"{}"))
            assert journal.load_session(mine, is_written=True) == (1, b"{}", [(2, b"two"), (10, b"ten")])
            journal.append((row(mine, 2, 2, b""), row(mine, 10, 2, b"new"), Saved(Document.SESSION, mine, 2, b"{ }")))
            assert journal.load_session(mine) == (2, b"{ }", [(10, b"new")])
            await written(journal)
            assert journal.load_session(mine, is_written=True) == (2, b"{ }", [(10, b"new")])
            assert journal.list_documents(Document.PART) == [
                (part_key(mine, 10), b"new"), (part_key(theirs, 1), b"other"),
            ]  # fmt: skip
            assert journal.erase("default", "s-1") == 1
            assert journal.load_session(mine) is None
            assert journal.load_session(theirs) == (1, b"{}", [(1, b"other")])
            assert journal.list_documents(Document.PART) == [(part_key(theirs, 1), b"other")]

        run(journal, scenario)

    def test_documents_that_belong_to_another_are_found_in_order_and_go_with_its_call(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            saved = [Saved(Document.RUN_EVENT, below(run, f"{n:08d}"), 1, b"%d" % n) for run in ("r", "r-2") for n in (1, 0)]
            journal.append((*saved, Saved(Document.RUN, "r", 1, b"{}"), Saved(Document.RUN, "r-2", 1, b"{}")))
            assert [data for _, data in journal.documents_below(Document.RUN_EVENT, "r")] == [b"0", b"1"]
            await written(journal, accepted("r"), settled("r"))
            assert [data for _, data in journal.documents_below(Document.RUN_EVENT, "r")] == [b"0", b"1"]
            assert journal.documents_below(Document.RUN_SIGNAL, "r") == []
            assert journal.erase("default", "s-1") == 4
            assert journal.documents_below(Document.RUN_EVENT, "r") == []
            assert len(journal.documents_below(Document.RUN_EVENT, "r-2")) == 2
            assert [key for key, _ in journal.list_documents(Document.RUN)] == ["r-2"]

        run(journal, scenario)

    def test_a_document_is_removed_and_no_other(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            saved = [Saved(Document.MEMORY, f"default\x1f{user}", 1, b"{}") for user in ("ann", "bob")]
            await written(journal, *saved, Saved(Document.STATE, "default\x1fann", 1, b"{}"))
            assert [journal.remove(Document.MEMORY, "default\x1fann") for _ in range(2)] == [True, False]
            assert journal.load(Document.MEMORY, "default\x1fann") is None
            assert [key for key, _ in journal.list_documents(Document.MEMORY)] == ["default\x1fbob"]
            assert journal.load(Document.STATE, "default\x1fann") is not None
            await written(journal, saved[0])  # under the same version as the removed document
            assert journal.load(Document.MEMORY, "default\x1fann") == (1, b"{}")

        run(journal, scenario)

    def test_the_sessions_of_a_user_are_found_by_their_calls(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(
                journal,
                accepted("a", user_id="ann", session_id="s-1"),
                settled("a", user_id="ann", session_id="s-1"),
                accepted("b", user_id="ann", session_id="s-2"),
                accepted("c", user_id="bob", session_id="ann"),
                accepted("d", user_id="ann", session_id="s-3", tenant_id="other"),
            )
            assert journal.sessions_of("default", "ann") == {"s-1", "s-2"}
            assert journal.sessions_of("default", "nobody") == set()

        run(journal, scenario)

    # --- rows ---

    def test_rows_can_be_taken_up_anywhere_in_any_number_and_for_one_tree(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            for number in range(4):
                name = f"r{number}"
                journal.append((accepted(name), accepted(f"{name}.1", parent_id=name), settled(f"{name}.1", parent_id=name)))
            await written(journal)
            rows = journal.rows()
            assert len(rows) == 12
            for after_id in (0, 1, 5, 11, 12, 99):
                for limit in (None, 0, 1, 7, 50):
                    for root_id in (None, "r1", "r1.1", "r"):
                        kept = [row for row in rows if row.id > after_id and root_id in {None, row.root_id}]
                        assert journal.rows(after_id=after_id, limit=limit, root_id=root_id) == kept[:limit]

        run(journal, scenario)

    @pytest.mark.parametrize("name", ['a"b', "a\\b", "ü-ñ-日本", "a%b_c", "'; DROP TABLE audit; --"])
    def test_a_tree_is_found_by_any_name(self, journal: Journal, name: str) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted(name), accepted("other"), settled(name))
            assert [row.id for row in journal.rows(root_id=name)] == [1, 3]
            assert journal.call(name) is not None

        run(journal, scenario)

    def test_the_chain_is_whole_after_each_append(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            assert journal.verify() == (True, 0, None, "")
            for number in range(5):
                await written(journal, accepted(f"r{number}"), settled(f"r{number}"))
                assert journal.verify() == (True, 2 * (number + 1), None, "")

        run(journal, scenario)


def _status(journal: Journal, request_id: str) -> str | None:
    """Return how a stored call ended; None while it is open."""
    stored = journal.call(request_id)
    assert stored is not None
    return None if stored.reply is None else str(stored.reply.status)
