"""What is remembered of people, from the command line."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Node, Reply

byte = Agent("byte")


@byte.capability("message")
async def message(ctx: Context) -> Reply:
    return Reply.success(message="Done.", new_facts=(ctx.request.message,), confidence=0.9)


@pytest.fixture
def remembered(place, comity, monkeypatch):
    """Let two users of two tenants be known in a store, and run commands on it."""
    monkeypatch.setenv("COMITY_STORE", "people.db")

    async def main():
        async with Node([byte], store=place / "people.db") as node:
            for user, session, text in (
                ("ann", "s", "tax year: 2024"), ("ann", "t", "mail: ann@example.com"), ("bob", "b", "likes tea"),
            ):  # fmt: skip
                assert (await node.call("byte", "message", message=text, user_id=user, session_id=session)).ok
            await node.call("byte", "message", message="other", user_id="ann", tenant_id="other")

    asyncio.run(main())

    def run(*arguments, exits=0):
        ran = comity("memory", *arguments)
        assert ran.code == exits, ran
        return ran.document if "--json" in arguments else ran.out + ran.err

    return run


def test_memory_is_listed_shown_corrected_forgotten_and_erased(place, remembered):
    people = remembered("list", "--json")["people"]
    assert [(one["user_id"], one["tenant_id"], one["facts"]) for one in people] == [
        ("ann", "default", 2), ("bob", "default", 1), ("ann", "other", 1),
    ]  # fmt: skip
    assert "ann" in remembered("list")
    shown = remembered("show", "ann")
    assert "m1    tax year: 2024" in shown
    assert "source byte, confidence 0.9" in shown
    assert "[[EMAIL_1_" in shown
    assert "ann@example.com" not in shown + str(remembered("show", "ann", "--json"))
    assert "mail: ann@example.com" in remembered("show", "ann", "--clear")
    assert "corrected" in remembered("correct", "ann", "m1", "tax year: 2023", "--by", "the boss")
    assert "corrected by the boss" in remembered("show", "ann")
    assert remembered("forget", "ann", "m2", "--json") == {"user_id": "ann", "fact_id": "m2", "forget": True}
    assert [one["text"] for one in remembered("show", "ann", "--json")["facts"]] == ["tax year: 2023"]
    assert "no fact 'm2'" in remembered("forget", "ann", "m2", exits=4)
    assert "no fact 'm9'" in remembered("correct", "ann", "m9", "x", exits=4)
    assert "cannot be undone" in remembered("erase", "ann", exits=2)
    assert remembered("erase", "ann", "--yes", "--json") == {"user_id": "ann", "erased": 1, "audit_ok": True}
    assert "nothing is remembered of 'ann'" in remembered("show", "ann", exits=4)
    assert "nothing of ann" in remembered("erase", "ann", "--yes", exits=4)
    assert [one["user_id"] for one in remembered("list", "--json")["people"]] == ["bob", "ann"]


def test_everything_of_a_person_can_be_erased_without_the_key(place, comity, remembered):
    (place / "people.db.key").unlink()
    assert "key file" in remembered("show", "ann", exits=5)
    assert len(remembered("list", "--json")["people"]) == 3
    assert "everything of ann" in remembered("erase", "ann", "--everything", "--yes")
    left = [(one["id"], one["user_id"]) for one in comity("sessions", "list", "--json").document["sessions"]]
    assert [one for one in left if one[1] == "ann" and one[0] in ("s", "t")] == []
    assert ("b", "bob") in left
    assert not any(b"tax year" in path.read_bytes() for path in place.iterdir())


def test_what_was_reported_in_a_session_goes_with_it(comity, remembered):
    assert comity("sessions", "erase", "s", "--yes").code == 0
    assert [one["id"] for one in remembered("show", "ann", "--json")["facts"]] == ["m2"]


def test_a_store_that_remembers_nobody_says_so(place, comity):
    async def main():
        async with Node([byte], store=place / "comity.db"):
            pass

    asyncio.run(main())
    assert "remembers nothing of any user yet" in comity("memory", "list").out
    assert comity("memory", "list", "--json").document["people"] == []
    assert comity("memory", "show", "ann").code == 4
