"""A conversation as a model reads it: turns of user and assistant, in full and in order, oldest first.

What the user said stands as it was said, and so does what this very agent answered. What another agent said, or noted in the
user's name, is a quotation from that agent. The messages of one prompt are the beginning of the next one's: a provider that
keeps what it has read of a prompt reads only what is new. Where the conversation is too long its beginning is left out in
large steps, so that this holds again for many turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

from comity.core.model.exchange import Assistant, User
from comity.core.model.quoting import Seal, quote
from comity.core.model.tokens import TokenCounter, count_messages, estimate
from comity.core.session.conversation import UNANSWERED, USER, Turn


class Dialogue(Struct, frozen=True):
    """The messages, how many turns were left out before them, and the orders found in what other agents said."""

    messages: tuple[User | Assistant, ...] = ()
    left_out: int = 0
    found: tuple[str, ...] = ()


def dialogue(
    turns: Sequence[Turn],
    agent_id: str,
    seal: Seal,
    *,
    left_out: int = 0,
    tokens_max: int,
    step_tokens: int,
    count: TokenCounter = estimate,
) -> Dialogue:
    """Return a conversation as messages to the model of an agent, of at most `tokens_max`.

    `left_out` turns stand before these and are not shown to this agent. What goes for want of room goes in steps of about
    `step_tokens`, counted from the first turn.
    """
    said: list[User | Assistant] = []
    found: list[str] = []
    for turn in turns:
        message, orders = _message(turn, agent_id, seal)
        said.append(message)
        found += orders
    first = _first_kept([count_messages((one,), count) for one in said], tokens_max, step_tokens)
    left_out += first
    if left_out and first < len(said):
        note = User(f"(The conversation began earlier: {left_out} turns before this one are left out here.)")
        said[first:first] = (note,)
    return Dialogue(tuple(said[first:]), left_out, tuple(dict.fromkeys(found)))


def _message(turn: Turn, agent_id: str, seal: Seal) -> tuple[User | Assistant, tuple[str, ...]]:
    is_own = turn.role.partition("/")[0] == agent_id and turn.by in ("", agent_id) and not turn.claimed_role
    if turn.role == USER and not turn.by:
        return User(turn.task or turn.text), ()
    if is_own:
        if turn.status in UNANSWERED:  # these are no words of the model
            text, found = quote(turn.text, f"agent {agent_id}", seal)
            return Assistant(f"({turn.status})\n{text}"), found
        return Assistant(turn.text), ()
    if turn.task:  # an agent that asked for something, in a session made for that
        text, found = quote(turn.task, f"agent {turn.by or turn.role}", seal, what="request")
        return User(text), found
    source = turn.by or turn.role
    claimed = turn.claimed_role or (turn.role if turn.by and turn.role.partition("/")[0] != turn.by else "")
    text = f"(said as {claimed}) {turn.text}" if claimed else turn.text
    text, found = quote(f"({turn.status}) {text}" if turn.status in UNANSWERED else text, f"agent {source}", seal)
    return User(text), (*found, "role") if claimed == USER else found


def _first_kept(sizes: list[int], tokens_max: int, step_tokens: int) -> int:
    """Return the first message that is kept: the first that must be, or the next after a whole number of steps."""
    over = sum(sizes) - tokens_max
    if over <= 0:
        return 0
    before = [0, *accumulate(sizes)]
    needed = next(place for place, tokens in enumerate(before) if tokens >= over)
    goal = -(-before[needed] // step_tokens) * step_tokens if step_tokens else before[needed]
    first = next((place for place, tokens in enumerate(before) if tokens >= goal), needed)
    return needed if first >= len(sizes) else first
