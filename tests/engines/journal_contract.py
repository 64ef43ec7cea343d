"""What every journal must do, as one suite. A test module subclasses `JournalContract` once for each journal it has."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from comity.core.envelope import Error, Reply, Request, Status
from comity.core.journal import Accepted, Late, Record, Refused, Settled, StateSaved
from comity.core.limits import Limits
from comity.ports import Journal

LIMITS = Limits()
PATIENCE_S = 30  # a test that waits for this has failed


def request(request_id: str, *, parent_id: str | None = None, created_at: int = 1_000, inputs: bytes = b"{}") -> Request:
    root_id = request_id if parent_id is None else parent_id.split(".")[0]
    return Request(
        request_id,
        "ANL",
        "ANL_NPV",
        "user-1",
        LIMITS,
        created_at + 30_000,
        created_at,
        body=Raw(inputs),
        root_id=root_id,
        parent_id=parent_id,
        session_id="s-1",
    )


def accepted(request_id: str, *, node_id: str = "node", **more: Any) -> Accepted:
    return Accepted(request(request_id, **more), 2_000, node_id)


def settled(request_id: str, data: Any = None, **more: Any) -> Settled:
    return Settled(
        request(request_id, **more), Reply(status=Status.SUCCESS, data=data, confidence=1.0, request_id=request_id), 3_000
    )


def refused(request_id: str, **more: Any) -> Refused:
    error = Error.of("ROUTING_CYCLE_DETECTED", "no")
    return Refused(request(request_id, **more), Reply(status=Status.REFUSED, error=error, request_id=request_id), 2_500)


def late(request_id: str, data: Any = None, **more: Any) -> Late:
    return Late(
        request(request_id, **more), Reply(status=Status.SUCCESS, data=data, confidence=1.0, request_id=request_id), 9_000
    )


async def written(journal: Journal, *records: Record) -> None:
    """Append records together and wait until they are durable; raise what stopped the journal."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def then(error: Exception | None) -> None:
        done.set_result(None) if error is None else done.set_exception(error)

    journal.append(records, then)
    await asyncio.wait_for(done, PATIENCE_S)


def run(journal: Journal, scenario: Callable[[Journal], Awaitable[None]]) -> None:
    """Open the journal, play the scenario in a real event loop, and close it."""

    async def main() -> None:
        journal.open()
        try:
            await scenario(journal)
        finally:
            await journal.close()

    asyncio.run(main())


class JournalContract:
    """Subclasses say how a journal is made."""

    def make(self, folder: Path) -> Journal:
        raise NotImplementedError

    @pytest.fixture
    def journal(self, tmp_path: Path) -> Journal:
        return self.make(tmp_path)

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
                while not journal.rows():  # noqa: ASYNC110  nobody is told, so there is nothing to wait on
                    await asyncio.sleep(0)

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

    def test_nothing_is_abandoned_in_a_new_journal(self, journal: Journal) -> None:
        async def scenario(journal: Journal) -> None:
            await written(journal, accepted("a"))
            assert journal.abandoned() == []  # its own calls are not

        run(journal, scenario)

    # --- states ---

    @pytest.mark.parametrize("together", [True, False], ids=["in one append", "in appends of their own"])
    def test_versions_of_a_state_only_go_up(self, journal: Journal, together: bool) -> None:
        async def scenario(journal: Journal) -> None:
            saved = [StateSaved("CART/7", version, b"%d" % index) for index, version in enumerate((2, 1, 5, 4, 5))]
            for batch in [saved] if together else [[one] for one in saved]:
                await written(journal, *batch)
            await written(journal, StateSaved("CART/8", 1, b"other"))
            assert journal.state("CART/7") == (5, b"2")
            assert journal.state("CART/8") == (1, b"other")
            assert journal.state("CART") is None
            assert journal.rows() == []  # a state is no decision

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


def told_by(journal: Journal, appends: Sequence[Sequence[Record]]) -> list[Exception | None]:
    """Append each of `appends` with a listener, and return the list the listeners write to."""
    told: list[Exception | None] = []
    for records in appends:
        journal.append(tuple(records), told.append)
    return told
