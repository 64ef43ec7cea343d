"""Hooks into the steps of a node, for the simulator, its invariants and crash tests.

An observer is called synchronously, in the event loop, and returns at once. `arrives` and `runs` may also interfere: a
simulator makes agents unknown, busy, slow or broken there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from comity.core.agent.agent import Agent
from comity.core.agent.tool import Tool
from comity.core.call.machine import Event, State
from comity.core.envelope.envelope import Request
from comity.core.handoff.machine import Handoff
from comity.core.handoff.queue import Step


class Call(Protocol):
    """A call as an observer sees it; equal only to itself."""

    request: Request
    agent: Agent
    state: State

    @property
    def waits_for(self) -> Collection[Call]:
        """The calls it made that have not ended."""
        ...

    @property
    def token(self) -> int:
        """The fencing token of its agent's lease; 0 where no lease is needed."""
        ...


class Observer:
    """Does nothing. A subclass overrides the hooks that it needs."""

    def arrives(self, request: Request, agent: Agent | None) -> Agent | None:  # noqa: ARG002
        """A request is about to be admitted or refused; return its agent as the node is to see it, None for an unknown one."""
        return agent

    def entered(self, call: Call) -> None:
        """A call was admitted and recorded, and is queued or runs."""

    def queued(self, call: Call) -> None:
        """A call has its place at its agent, or waits for one."""

    def starting(self, call: Call) -> None:
        """A call is about to take its place."""

    async def runs(self, call: Call) -> None:
        """An implementation is about to be invoked; what is raised here is raised in its stead."""

    def using(self, tool: Tool, request: Request) -> None:
        """A tool is about to do what it does."""

    def leaving(self, call: Call) -> None:
        """The code of a call has stopped; its place is about to be given to the next call."""

    def settling(self, call: Call, event: Event) -> None:
        """A call is about to end."""

    def settled(self, call: Call) -> None:
        """A call has ended and its record is made."""

    def putting_aside(self, calls: Sequence[Call]) -> None:
        """A call and everything below it are about to leave memory without having ended."""

    def put_aside(self, calls: Sequence[Call]) -> None:
        """They have left memory."""

    def moved(self, machine: str, state: str, event: str) -> None:
        """A state machine takes a step that no other method shows: of an `activation`, a `breaker`, a `call` that is sent."""

    def acknowledged(self, handoff_id: str) -> None:
        """A program is about to be told that its handoff is durable."""

    def performed(self, step: Step) -> None:
        """A step of the handoff queue is durable."""

    def shown(self, handoff: Handoff) -> None:
        """A program is about to be told how a handoff stands."""
