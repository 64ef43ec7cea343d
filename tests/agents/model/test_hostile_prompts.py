"""A thousand prompts with hostile words from every place words can come from: no mark closed, no role forged, all on record."""

from __future__ import annotations

import ast
import base64
import contextlib
import typing
from pathlib import Path

import pytest
from hostile import (
    CANARY,
    CHANGES,
    GUIDED,
    NODE_FILLS,
    NOT_SHOWN,
    OPEN_THEMSELVES,
    PLACES,
    SEEN_IN_REPLIES,
    WORDS,
    Stage,
    reply_of,
)

import comity
from comity.agents.model.turn import NOTES_MAX
from comity.core.document.unseen import without_unseen
from comity.core.envelope.envelope import Background, Reply
from comity.core.guidance.guidance import Guidance
from comity.core.model.exchange import Assistant, System
from comity.core.model.injection import CONTROL
from comity.core.model.quoting import MARK, Seal, is_whole
from comity.core.session.session import Change
from comity.engines.cipher import derived
from comity.errors import ComityError
from comity.testing import run_virtual

KEY = derived(bytes(32), "identity")
PLATFORM_TOOLS = {"insight": "query_insights", "handoff": "hand_off"}  # by the places that need them: schemas take time


def outside(text: str, seals: list[Seal]) -> str:
    """Return what stands outside quotations, having walked every mark: each opens, is closed by its own, and fits its words."""
    rest, place = [], 0
    while (opened := MARK.search(text, place)) is not None:
        assert opened[1] is None, f"a mark is closed that was not open: {opened[0]}"
        rest.append(text[place : opened.start()])
        end = f"\n[end of {opened[0][1:]}"
        close = text.index(end, opened.end())
        words = text[opened.end() + 1 : close]
        assert MARK.search(words) is None, f"a mark stands inside {opened[0]}"
        assert any(is_whole(opened[0], words, seal) for seal in seals)
        assert CONTROL.search(words) is None
        assert without_unseen(words) == (words, False)
        place = close + len(end)
    return "".join((*rest, text[place:]))


def texts_of(prompt):
    """The words of a prompt with who says them, tools' descriptions included."""
    return [(type(one), one.text) for one in prompt.messages] + [(System, tool.description) for tool in prompt.tools]


def words_for(place: str) -> list[str]:
    """A third of all words, another one for each place: over all places each of them is said often."""
    first = list(PLACES).index(place) % 3
    return list(WORDS.values())[first::3]


async def played(stage: Stage, place: str, words: str, number: int):
    """Play one place; return the new prompts of the agent that reads, the notes about it in the audit, and whose marks fit."""
    stage.words, stage.number = f"{words[:200]} {CANARY} {words}", number
    before = {} if place in OPEN_THEMSELVES else {id(stage.boss): len(stage.boss.mind.model.prompts)}
    rows_before = 0 if place in OPEN_THEMSELVES else len(stage.node.audit.rows())
    with contextlib.suppress(ComityError):  # words with control characters are no reason of a receiver's, for one
        await PLACES[place](stage)
    prompts = stage.reader.mind.model.prompts[before.get(id(stage.reader), 0) :]
    rows = stage.node.audit.rows()[rows_before:]
    scopes = {f"s{number}", f"t{number}", *(row.root_id for row in rows)}
    return prompts, [row.note for row in rows if row.note], scopes


@pytest.mark.parametrize("place", PLACES)
def test_words_of_others_reach_a_prompt_in_quotations_only(place, monkeypatch):
    monkeypatch.setenv("COMITY_VAULT_KEY", base64.b64encode(bytes(32)).decode())
    chosen, shown = words_for(place), 0

    async def main():
        nonlocal shown
        stage = Stage(*(tool for word, tool in PLATFORM_TOOLS.items() if place.startswith(word)))
        async with contextlib.nullcontext() if place in OPEN_THEMSELVES else stage.open():
            for number, words in enumerate(chosen):
                stage = Stage() if place in OPEN_THEMSELVES else stage
                prompts, notes, scopes = await played(stage, place, words, number)
                shown += check(prompts, notes, [Seal(KEY, f"default {scope}") for scope in scopes], words, place)

    run_virtual(main())
    assert place in NOT_SHOWN or shown >= len(chosen) - 1


def check(prompts, notes, seals, words, place) -> bool:
    """Walk the prompts of one word; return whether the word is there."""
    is_here = False
    for who, text in (one for prompt in prompts for one in texts_of(prompt)):
        if who is Assistant and place == "what is wrong with a reply":
            continue  # the model's own words
        rest = outside(text, seals)
        assert CANARY not in rest, f"{who.__name__}: {rest[:300]!r}"
        is_here |= CANARY in text
    found = [note for note in notes if "orders in " in note]
    assert not is_here or found, f"not on record: {words[:80]!r}"
    assert len(found) <= 2 * NOTES_MAX
    assert CANARY not in "".join(notes)
    return is_here


def test_there_are_more_than_a_thousand_prompts():
    assert sum(len(words_for(place)) for place in PLACES) > 1_000
    assert {words for place in PLACES for words in words_for(place)} == set(WORDS.values())


# --- every place is there ---


def test_every_kind_of_change_and_every_field_that_carries_words_is_a_place():
    assert CHANGES.keys() == {one.__name__ for one in typing.get_args(Change)}
    assert {f"background {name}" for name in Background.__struct_fields__} <= PLACES.keys()
    assert GUIDED.keys() == set(Guidance.__struct_fields__)
    for name in Reply.__struct_fields__:
        assert (reply_of(name, "x") is None) == (name in NODE_FILLS), name
    assert set(SEEN_IN_REPLIES) < set(Reply.__struct_fields__)


# Where messages and descriptions of tools are made, and whose words each holds beside the platform's own sentences.
SITES = {
    "core/model/dialogue.py dialogue": "the platform's note of what is left out",
    "core/model/dialogue.py _message": "turns: the user's, this agent's own, quotations of others",
    "agents/model/colleagues.py call_definition": "the list of agents, quoted",
    "agents/model/colleagues.py transfer_definition": "the list of agents, quoted",
    "agents/model/turn.py _begin": "the author's, guidance quoted, and the briefing",
    "agents/model/turn.py _offer_tools": "the author's",
    "agents/model/turn.py _use_tools": "the platform's",
    "agents/model/turn.py _hint_at_the_end": "the platform's",
    "agents/model/turn.py _use": "the model's own",
    "agents/model/turn.py _result_of": "tools, quoted; the platform's",
    "agents/model/turn.py _call_agent": "the platform's",
    "agents/model/turn.py _transfer": "the platform's",
    "agents/model/turn.py _told": "delegates, quoted by read_reply",
    "agents/model/turn.py _failed": "errors of tools, quoted",
    "agents/model/turn.py _finish": "the model's own; what is wrong with it, quoted",
    "agents/model/turn.py _answered": "the model's own; what is known, quoted",
    "agents/model/turn.py _answer": "the model's own, to count its tokens",
}
MADE = {"System", "User", "Assistant", "ToolResult", "ToolDefinition"}


def test_messages_are_made_only_where_this_test_knows_of():
    root = Path(comity.__file__).parent
    found = set()
    for path in sorted(
        (
            *root.glob("core/**/*.py"),
            *(one for one in root.glob("agents/model/*.py") if one.name != "pydantic_ai.py"),
            *root.glob("runtime/**/*.py"),
        )
    ):
        text = path.read_text()
        if not any(f"{name}(" in text for name in MADE):
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = {
                    node.func.id
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                }
                if names & MADE:
                    found.add(f"{path.relative_to(root)} {function.name}")
    assert found == SITES.keys()
