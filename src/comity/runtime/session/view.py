"""What an agent sees of its session, and how it adds to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from comity.core.document.checks import take_share, take_text
from comity.core.envelope.envelope import Background, Reply
from comity.core.redaction import restore_text
from comity.core.session import session as core
from comity.core.session.conversation import SUMMARY, Turn, position_of
from comity.core.session.memory import Fact, Memory, Note, drop_note, learn, note, plain_key
from comity.core.session.session import Change, Session
from comity.errors import CallerError
from comity.runtime.session.clear import seen
from comity.runtime.session.memory import Memories
from comity.runtime.session.sessions import Sessions

if TYPE_CHECKING:
    from comity.core.model.task_prompt import Known
    from comity.runtime.call.call import Call
    from comity.runtime.session.privacy import Privacy

_C = TypeVar("_C", bound=Change)


class SessionView:
    """What an agent sees of its session, and how it adds to it. `ctx.session` is one.

    What it adds is hidden as inputs are, under the same tokens, and shown as inputs are: in clear only what its capability
    declares to need and the node grants it.
    """

    __slots__ = ("_based_on", "_call", "_granted", "_live", "_memories", "_privacy", "_sessions", "_written")

    def __init__(self, sessions: Sessions, memories: Memories, call: Call, privacy: Privacy | None) -> None:
        self._sessions = sessions
        self._memories = memories
        self._live = live = sessions.live_of(call)
        self._call = call
        self._privacy = privacy
        self._granted = frozenset[str]() if privacy is None else privacy.granted(call.request, call.capability.clear)
        self._based_on = live.session.version
        self._written: dict[str, int] = {}  # single values this agent replaced, and at which version

    @property
    def id(self) -> str:
        """The session's id."""
        return self._live.session.id

    @property
    def user_id(self) -> str:
        """The user who owns the session."""
        return self._live.session.user_id

    @property
    def tenant_id(self) -> str:
        """The tenant of that user."""
        return self._live.session.tenant_id

    @property
    def version(self) -> int:
        """How often the session has changed."""
        return self._live.session.version

    @property
    def facts(self) -> dict[str, Any]:
        """Facts by key: those of this session, then those remembered from earlier sessions of its user."""
        return {key: fact.value for key, fact in self._all_facts().items()}

    @property
    def decisions(self) -> tuple[str, ...]:
        """What has been decided."""
        return self._seen.decisions

    @property
    def constraints(self) -> dict[str, Any]:
        """What has been agreed to hold."""
        return dict(self._seen.constraints)

    @property
    def private(self) -> dict[str, Any]:
        """This agent's own part of the session; a copy, kept with `keep`."""
        return dict(self._seen.private.get(self._agent, {}))

    @property
    def workflow(self) -> core.Workflow:
        """The progress of the work: step, number of steps, and the state set with `place`."""
        return self._seen.workflow

    def fact(self, key: str) -> core.Fact | None:
        """Return the fact under a key, with source, confidence and time, or None."""
        known = self._all_facts()
        return known.get(key) or known.get(plain_key(key))

    def history(self) -> tuple[Turn, ...]:
        """The turns of the conversation that the caller's policy lets this agent see."""
        return core.history(self._seen, self._call.request.history)

    def background(self) -> Background:
        """The handoff context: what the next agent should know about the work so far."""
        request = self._call.request
        return core.background(self._seen, request.history, tuple(one.partition("/")[0] for one in request.chain))

    def known(self) -> Known:
        """Return the session's background for the prompt of this call, without the call's own message."""
        from comity.core.model.task_prompt import Known  # noqa: PLC0415  only agents with a model need it

        session, request = self._seen, self._call.request
        place = len(session.turns)
        if core.is_first(request):  # later turns belong to other calls, or to an earlier run of this one
            place = position_of(session.turns, request)
            session = replace(session, turns=session.turns[: place + 1])
        shown = tuple(turn for turn in core.history(session, request.history) if turn.request_id != request.request_id)
        hidden = session.turns_dropped + place - sum(turn.role != SUMMARY for turn in shown)
        return Known(self.background(), shown, hidden)

    def missing(self, *keys: str) -> tuple[str, ...]:
        """Return those of the keys without a fact in this or an earlier session; ask the user only for these."""
        known, remembered = self._live.session, self._remembered()
        unknown = (key for key in keys if core.missing(known, (self._hidden(core.Learn(key, None, "")).key,)))
        return tuple(key for key in unknown if plain_key(key) not in remembered)

    def answers_to(self, question: Reply) -> dict[str, Any]:
        """Return the known facts, by key, that a question (a reply `needs_input`) asks for."""
        from comity.core.session.asking import asked_for  # noqa: PLC0415  few agents ask

        facts = self.facts
        return {key: facts[key] for key in asked_for(question, facts)}

    def show(self, text: str) -> str:
        """Return a clear text with the personal data hidden that this agent may not see."""
        if self._privacy is None:
            return text
        hidden = self._privacy.hide_text(text, lambda: self._sessions.vault(self._live))
        vault = self._live.vault
        return restore_text(hidden, vault, self._granted) if vault is not None and self._granted else hidden

    def refresh(self) -> None:
        """Base further changes on the current session. Call it after a conflict, once the new values have been read."""
        self._based_on = self._live.session.version

    def say(self, text: str, *, role: str = "") -> None:
        """Add a turn of this agent to the conversation. Another `role` is kept as `claimed_role`."""
        self._change(core.Say(self._agent, text, by=self._agent, claimed_role="" if role == self._agent else role))

    def learn(self, key: str, value: Any, *, source: str = "", confidence: float = 1.0) -> None:
        """Note a fact, whose source is this agent; another `source` is kept as `claimed_source`.

        Raises `CallerError` SESSION_CONFLICT if another agent wrote the fact since this agent looked.
        """
        self._change(core.Learn(key, value, self._agent, confidence, "" if source == self._agent else source))

    def decide(self, text: str) -> None:
        """Note a decision."""
        self._change(core.Decide(text))

    def assume(self, text: str) -> None:
        """Note an assumption."""
        self._change(core.Assume(text))

    def constrain(self, key: str, value: Any) -> None:
        """Set a constraint."""
        self._change(core.Constrain(key, value))

    def place(self, position: str, *, step: int = 0, steps: int = 0, state: dict[str, Any] | None = None) -> None:
        """Set the progress of the work: a position in words, the step, and the orchestrator's state."""
        self._change(core.Place(position, step, steps, state or {}))

    def produce(self, key: str, value: Any) -> None:
        """Note an output other agents may build on."""
        self._change(core.Produce(self._agent, key, value))

    def keep(self, data: dict[str, Any]) -> None:
        """Replace this agent's private part."""
        self._change(core.Keep(self._agent, data))

    def summarise(self, text: str) -> None:
        """Replace the summary of the conversation."""
        self._change(core.Summarise(text))

    def _all_facts(self) -> dict[str, core.Fact]:
        return self._remembered() | self._seen.facts

    def _remembered(self) -> dict[str, core.Fact]:
        """Return facts by key from earlier sessions of the user."""
        keyed = [one for one in self._memories.of(self.tenant_id, self.user_id).facts if one.key]
        return {one.key: core.Fact(self.show(one.value), one.source, one.confidence, one.at_ms) for one in keyed}

    def _change(self, change: Change) -> None:
        self._call.check_running()
        self._apply(self._hidden(core.sound(change)))

    def _apply(self, change: Change) -> None:
        name = core.replaces(change)
        # An agent's own write is no conflict, even if other values changed meanwhile.
        self._sessions.change(self._live, change, based_on=max(self._based_on, self._written.get(name, 0)))
        self._written[name] = self._live.session.version

    @property
    def _agent(self) -> str:
        return self._call.agent.id

    @property
    def _seen(self) -> Session:
        session, vault = self._sessions.noted(self._live), self._live.vault
        return seen(session, vault, self._granted) if self._granted and vault is not None else session

    def _hidden(self, change: _C) -> _C:
        return change if self._privacy is None else self._privacy.hide_change(change, lambda: self._sessions.vault(self._live))


class MemoryView:
    """An agent's view of the memory of its user, and how it adds to it; `ctx.memory` is one."""

    __slots__ = ("_call", "_memories", "_session")

    def __init__(self, memories: Memories, call: Call, session: Callable[[], SessionView]) -> None:
        self._memories = memories
        self._call = call
        self._session = session

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Facts about the user from this and earlier sessions, each with source, confidence and time, oldest first."""
        return self.memory().facts

    def get(self, key: str) -> Fact | None:
        """Return the fact under a key (`key: value`), or None."""
        return self.memory().find(key)

    def learn(self, text: str, *, confidence: float = 1.0) -> None:
        """Remember a fact, best as `key: value`, at once; `new_facts` of a reply does so only if the call succeeds."""
        call, request = self._call, self._call.request
        call.check_running()
        sure = take_share(confidence, "learn.confidence")
        clear = take_text(text, "learn.text")
        if not clear.strip():
            raise CallerError("learn.text must not be empty", code="INPUT_VALIDATION_FAILED")
        new = Fact("", self._clear(clear), call.agent.id, sure, self._memories.now_ms(), request.session_id, request.request_id)
        self._memories.change(request.tenant_id, request.user_id, lambda memory: learn(memory, (new,)))

    @property
    def notes(self) -> tuple[Note, ...]:
        """This agent's private notes about the user, oldest first; erased with their session or with the user."""
        return self.memory().notes

    def note(self, text: str, **labels: str) -> Note:
        """Keep a text of the user with labels, under this call's id; it replaces this agent's note with the same text."""
        call, request = self._call, self._call.request
        call.check_running()
        clear = self._clear(take_text(text, "note.text"))
        new = Note(request.request_id, clear, call.agent.id, self._memories.now_ms(), request.session_id, labels)
        self._memories.change(request.tenant_id, request.user_id, lambda memory: note(memory, new))
        return replace(new, text=text)

    def drop_note(self, note_id: str) -> bool:
        """Forget a note of this agent; return whether there was one."""
        self._call.check_running()
        request, agent = self._call.request, self._call.agent.id
        has_note = any(one.id == note_id for one in self.notes)
        self._memories.change(request.tenant_id, request.user_id, lambda memory: drop_note(memory, agent, note_id))
        return has_note

    def memory(self) -> Memory:
        """Return the memory as this agent may see it, with only its own notes."""
        request, agent = self._call.request, self._call.agent.id
        memory = self._memories.of(request.tenant_id, request.user_id)
        if not memory.facts and not memory.notes:
            return memory
        show = self._session().show
        facts = tuple(replace(one, text=show(one.text)) for one in memory.facts)
        return replace(
            memory, facts=facts, notes=tuple(replace(one, text=show(one.text)) for one in memory.notes if one.agent == agent)
        )

    def _clear(self, text: str) -> str:
        live = self._call.session_head.live
        return text if live is None or live.vault is None else restore_text(text, live.vault)
