"""The sessions of a node: one copy of each in memory, bound to a tenant and user, saved with the records that change it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from comity.core.document.payload import unpack, unpack_long
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import Accepted, Document, Record, Saved, part_key
from comity.core.journal.terms import Terms
from comity.core.session import session as core
from comity.core.session.conversation import Turn
from comity.core.session.parts import Parts
from comity.core.session.session import EXPIRED_MS, USE_NOTED_MS, Change, Session
from comity.core.units import NS_PER_MS
from comity.errors import CallerError
from comity.ports import Cipher, Clock, Ids, Journal, Then
from comity.runtime.call.call import Call
from comity.runtime.call.slices import LONG_BYTES
from comity.runtime.session.alone import Alone
from comity.runtime.session.in_memory import InMemory
from comity.runtime.session.live import (
    ENDED_BYTES_MAX,
    ENDED_MAX,
    SEPARATOR,
    UNCOUNTED_BYTES,
    Answered,
    Ended,
    Kept,
    Live,
    Noted,
    drop_older,
    kept,
    key_of,
    read_stored,
    size_of,
)
from comity.runtime.session.merging import Merging
from comity.runtime.session.standing import NEVER, Apply
from comity.runtime.session.vaults import Vaults

SESSION_BYTES_MAX: Final = 4 * 1024 * 1024  # of what a session holds, as JSON
_encode = msgspec.json.Encoder().encode


class Sessions(InMemory, Vaults):
    """All sessions of a node."""

    def __init__(self, journal: Journal, clock: Clock, ids: Ids, cipher: Cipher, calls: Mapping[str, Call]) -> None:
        InMemory.__init__(self, calls)
        Vaults.__init__(self, journal, ids, cipher)
        self._clock = clock
        self._unsaved: dict[Live, None] = {}  # sessions with ended calls that are not saved yet
        self._writing: Alone | Merging = Alone(journal, self.saved)  # replaced when other nodes write the same sessions
        journal.forgot = self.pruned

    def find(self, tenant_id: str, session_id: str) -> Live | None:
        """Return a session from memory or the store, or None."""
        live = self._live.get((tenant_id, session_id))
        if live is not None:
            if self._writing.is_current(live):
                return live
            self.drop(tenant_id, session_id)
        key = key_of(tenant_id, session_id)
        stored = self._writing.load(key)
        if stored is None:
            return None
        live = Live(*read_stored(stored, session_id), *self.load_vault(key), self._noted_at(key))
        self._writing.reread(live)
        return self._remember(live)

    def bind(self, request: Request, now_ms: int, may_be_known: bool = False) -> Live | None:
        """Return the session that a root call names, new if there is none; None for a call that names none.

        An implicit session uses the call's own id. It can already exist if the call is being resumed, or if a user created a
        session under that id; that user keeps it.
        """
        if request.parent_session_id is not None:
            owner = self.owner_of(request.tenant_id, request.parent_session_id)
            if owner not in {"", request.user_id}:  # a link to another user's session, which admission refuses
                return Live(_new(request.tenant_id, owner, request.parent_session_id, now_ms))
        elif request.session_id == request.root_id:
            return self.find(request.tenant_id, request.session_id) if may_be_known else None
        live = self.find(request.tenant_id, request.session_id)
        if live is not None:
            if now_ms - live.used_at >= EXPIRED_MS:  # unused on this node; another node may have used it
                live.used_at = max(live.used_at, self._noted_at(live.key))
            return live
        owner = self._caller_of(request.tenant_id, request.session_id)
        if owner not in {"", request.user_id}:
            return Live(_new(request.tenant_id, owner, request.session_id, now_ms))  # another user's: admission refuses it
        return self.begin(request.tenant_id, request.user_id, request.session_id, now_ms, request.parent_session_id or "")

    def bind_below(self, request: Request, above: Live, now_ms: int) -> Live | None:
        """Return the separate session of a delegated call; its vault learns the values of the parent session's vault."""
        live = self.bind(request, now_ms)
        if live is not None and above.vault is not None and live.session.user_id == above.session.user_id:
            self.vault(live).learn(above.vault)
        return live

    def owner_of(self, tenant_id: str, session_id: str) -> str:
        """Return the user who owns a session, or the call whose id is the session's; empty if there is neither."""
        live = self.find(tenant_id, session_id)
        return self._caller_of(tenant_id, session_id) if live is None else live.session.user_id

    def _caller_of(self, tenant_id: str, session_id: str) -> str:
        """Return the user of the call whose implicit session has this id; empty if there is none."""
        call = self._calls.get(session_id)
        root = self._journal.call(session_id) if call is None else call.request
        is_own = root is not None and (root.tenant_id, root.session_id) == (tenant_id, session_id)
        return root.user_id if root is not None and is_own else ""

    def refresh(self, tenant_id: str, session_id: str) -> None:
        """Load changes that another node has saved since the session was read here."""
        live = self._live.get((tenant_id, session_id))
        if live is not None:
            self._writing.is_current(live)

    def share(self) -> None:
        """Share the sessions with other nodes from now on: each is read again before it is used."""
        self._writing = Merging(self, self._journal)
        for live in self._live.values():
            if live.is_stored:
                self._writing.reread(live)

    def at(self, key: str) -> Live | None:
        """Return the session in memory that is stored under a key."""
        tenant_id, _, session_id = key.partition(SEPARATOR)
        return self._live.get((tenant_id, session_id))

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        """Append records; sessions among them are merged with changes by other nodes."""
        self._writing.append(records, then, terms)

    def accept(self, accepted: Accepted, live: Live | None, then: Then, terms: Terms) -> None:
        """Append the acceptance of a call, with its session if the call is the first to name it.

        If another user names the same session on another node at that moment, the call is refused.
        """
        request = accepted.request
        if live is None or not is_new(live, request):
            self._journal.append((accepted,), then, terms)
            return
        terms = replace(terms, session=(live.key, request.user_id))
        if live.session.version:
            self.append((accepted, *self.saved(live)), then, terms)
        else:
            self._writing.claim(accepted, live, then, terms)

    def begin(self, tenant_id: str, user_id: str, session_id: str, now_ms: int, parent_id: str = "") -> Live:
        """Make a session and bind it to its user. It is stored once a call names it or it has content."""
        session = _new(tenant_id, user_id, session_id, now_ms, parent_id)
        return self._remember(Live(session, is_stored=False))

    def found(self, tenant_id: str, user_id: str, session_id: str, now_ms: int) -> Live:
        """Return a session, made now if there is none."""
        return self.find(tenant_id, session_id) or self.begin(tenant_id, user_id, session_id, now_ms)

    def live_of(self, call: Call) -> Live:
        """Return the session of a call, made now if it has none."""
        head = call.session_head
        if head.live is None:
            request = head.request
            found = self.find(request.tenant_id, request.session_id) if head.way.on_terms else None
            head.live = found or self.begin(request.tenant_id, request.user_id, request.session_id, request.created_at)
        call.live = head.live
        return head.live

    def saved_vault(self, live: Live) -> tuple[Saved, ...]:
        """Return the record of the vault if values were hidden since it was last saved, else nothing."""
        if live.vault is None or len(live.vault) == live.vault_saved or live.is_gone:
            return ()
        return (self.sealed_vault(live, live.vault), *self.saved(live))

    def save_vault(self, live: Live) -> None:
        """Append `saved_vault`."""
        if saved := self.saved_vault(live):
            self.append(saved)

    def saved(self, live: Live) -> tuple[Saved, ...]:
        """Return the records that save a session: its new rows, then its head."""
        live.is_stored = True
        session, key, before = live.standing.document(live.session), live.key, live.parts.size
        if session is not live.session:
            live.parts.compare(session)
        head, rows = live.parts.save(session)
        version = session.version + 1
        if self._live.get((session.tenant_id, session.id)) is live:
            self._live_bytes += live.parts.size - before
        saved = Saved(Document.SESSION, key, version, head, used_at=session.used_at)
        return (*(Saved(Document.PART, part_key(key, number), version, data) for number, data in rows), saved)

    def saved_again(self, live: Live, changes: tuple[int, ...]) -> tuple[Saved, ...]:
        """Return the records of a session that was read again, with the changes of a repeated append."""
        live.session = live.standing.include(changes, live.session)
        live.parts.compare(live.standing.document(live.session))
        return self.saved(live)

    def is_there(self, live: Live) -> bool:
        """Load changes of other processes; return whether the session still exists."""
        if live.is_gone:
            return False
        is_there = self._writing.is_current(live)
        if not is_there:
            self._lose(live)
            place = (live.session.tenant_id, live.session.id)
            if self._live.get(place) is live:
                self._let_go(*place)
        return is_there

    def change(self, live: Live, change: Change, *, based_on: int) -> None:
        """Apply a change and save it. Raises `CallerError` SESSION_CONFLICT for the caller to resolve."""
        self.append(self.changed(live, change, based_on=based_on))

    def changed(self, live: Live, change: Change, *, based_on: int | None = None) -> tuple[Saved, ...]:
        """Apply a change and return the records that save it; `based_on` None means the current version."""
        if not self.is_there(live):
            raise CallerError(f"session {live.session.id} was erased, or is another user's now", code="SESSION_ERASED")
        base = self.noted(live)
        based_on = base.version if based_on is None else based_on
        outcome = core.apply(base, change, based_on=based_on, now_ms=self._now_ms())
        if isinstance(outcome, core.Conflict):
            message = f"{outcome.what} was written at version {outcome.current}; this change was based on {outcome.based_on}"
            raise CallerError(message, code="SESSION_CONFLICT", current=outcome.current)
        if not isinstance(change, core.Say | core.Answer):  # these drop the oldest turns instead
            size = live.parts.size - live.parts.size_of(core.entry_of(change)) + len(_encode(change))
            if size > SESSION_BYTES_MAX:
                message = f"session {outcome.id} would hold {size:,} bytes; at most {SESSION_BYTES_MAX:,} are allowed"
                raise CallerError(message, code="SESSION_FULL")
        self._writing.note_ended(live)
        self._writing.note(live, partial(self._again, change))
        return self._written(live, outcome, change)

    def _again(self, change: Change, session: Session) -> Session:
        """Apply a pending change again after another node's change, without checking for conflicts.

        The store may already have the change although this node got no confirmation, so a turn is not added twice.
        """
        if isinstance(change, core.Say):
            if change.request_id and any(_is_of(turn, change) for turn in reversed(session.turns)):
                return session
        elif isinstance(change, core.Answer):
            change = replace(change, said=tuple(one for one in change.said if not _is_said(session, one)))
        made = core.apply(session, change, based_on=session.version, now_ms=self._now_ms())
        return session if isinstance(made, core.Conflict) else made

    def unsaved_ends(self, live: Live) -> Apply | None:
        """Return the change that adds the ended calls of a session that are not saved yet; None if there are none."""
        if live.ended is None and live.answers is None:
            return None
        ended, answers = list(live.ended or ()), dict(live.answers or {})
        return lambda session: self._with(session, ended, dict(answers), is_again=True)[0]

    # --- what calls add by themselves ---

    def hear(self, live: Live, request: Request, *, is_again: bool, is_fresh: bool = True) -> None:
        """Add the user's turn of a call; only once if the call is a replay or its id is not fresh.

        Another node may have added the turn of a known id without starting the call: the turn is written without terms, the
        acceptance with terms.
        """
        if not self.is_there(live):
            return
        said = core.heard(request, unpack_long(request.body))
        is_known = is_again or not is_fresh
        if said is None or (is_known and any(_is_of(turn, said, is_again=is_again) for turn in reversed(live.session.turns))):
            return
        self.change(live, said, based_on=live.session.version)

    def told(self, live: Live, request: Request, reply: Reply) -> tuple[Saved, ...]:
        """Return the records of the turns that the end of a call adds to the conversation."""
        if not self.is_there(live):
            return ()
        return self.changed(live, core.answered(request, reply, (core.told(request, reply),)))

    def ended(self, live: Live, request: Request, reply: Reply, now_ms: int, reply_bytes: int) -> None:
        """Note the end of a call without a message in its session: the agent and its answer.

        Writing the session for each of thousands of calls per second would cost too much: the end is noted in memory, and
        saved with the next change or after a few seconds.
        """
        if core.is_first(request):
            self.note(live, request, reply, now_ms, reply_bytes)
        else:
            self.answered(live, request, reply, reply_bytes)

    def note(self, live: Live, request: Request, reply: Reply, now_ms: int, reply_bytes: int) -> None:
        """Note the end of a user's call without a message; saved as `ended` describes.

        An implicit session that is not stored does not keep a long call. `reply_bytes` is the size of a long reply.
        """
        if not live.is_stored and (reply_bytes or len(request.body) > LONG_BYTES):
            return
        if live.ended is None:
            live.ended = deque(maxlen=ENDED_MAX)
        live.ended.append((request, kept(request, reply, now_ms) if reply_bytes else reply, now_ms))
        live.noted = None
        if live.is_stored:
            self._unsaved[live] = None
        if reply_bytes or len(request.body) > UNCOUNTED_BYTES:
            live.ended_bytes += size_of(live.ended[-1])
            if live.ended_bytes > ENDED_BYTES_MAX // 2:
                drop_older(live, live.ended)

    def answered(self, live: Live, request: Request, reply: Reply, reply_bytes: int) -> None:
        """Note the answer of one agent to another; saved as `ended` describes."""
        if live.answers is None:
            live.answers = {}
        live.answers[request.target, request.capability] = (request, kept(request, reply) if reply_bytes else reply)
        self._changed_by_calls(live)

    def _changed_by_calls(self, live: Live) -> None:
        live.noted = None
        if live.is_stored:
            self._unsaved[live] = None

    def noted(self, live: Live) -> Session:
        """Return a session with the ended calls that are not saved yet."""
        if live.ended is None and live.answers is None:
            return live.session
        if live.noted is None or live.noted.before is not live.session:
            live.noted = Noted(live.session, *self._with(live.session, live.ended or (), dict(live.answers or {})))
        return live.noted.session

    def current(self, live: Live) -> Session:
        """Return a session as it is now, with its last use, even if that use changed nothing in it."""
        session = self.noted(live)
        return replace(session, used_at=max(session.used_at, live.used_at))

    def _written(self, live: Live, session: Session, *changes: Change) -> tuple[Saved, ...]:
        """Return the records that save a session with its ended calls: an unsaved state must not have a version.

        `changes` were made after these calls.
        """
        ended = () if live.noted is None else live.noted.changes
        live.parts.touch(entry for change in (*ended, *changes) if (entry := core.entry_of(change)) is not None)
        live.session = session
        live.ended = live.answers = live.noted = None
        live.ended_bytes = 0
        self._unsaved.pop(live, None)
        return self.saved_vault(live) or self.saved(live)

    def _with(
        self,
        session: Session,
        ended: Iterable[Ended],
        answers: dict[tuple[str, str], Answered],
        *,
        is_again: bool = False,
    ) -> tuple[Session, list[Change]]:
        said = list[core.Say | None]()
        for request, reply, at_ms in ended:
            answers[request.target, request.capability] = (request, reply)
            inputs = unpack(request.body) if len(request.body) < LONG_BYTES else request.body  # which is its JSON
            told = reply.told if type(reply) is Kept else core.told(request, reply, at_ms)  # type: ignore[arg-type]
            both = (core.heard(request, inputs, at_ms), told)
            said += (one for one in both if not is_again or one is None or not _is_said(session, one))
        changes: list[Change] = []
        answered = [
            reply.answer if isinstance(reply, Kept) else core.answered(request, reply) for request, reply in answers.values()
        ]
        answered.append(core.Answer("", said=tuple(one for one in said if one is not None)))
        for change in answered:
            if change.agent or change.said:
                made = core.apply(session, change, based_on=session.version, now_ms=self._now_ms())
                assert not isinstance(made, core.Conflict)  # additions never conflict
                session = replace(made, used_at=session.used_at)  # its use is recorded separately, see `use`
                changes.append(change)
        return session, changes

    def save_ended(self, limit: int | None = None) -> bool:
        """Save sessions in which calls have ended, at most `limit`; return whether there are more."""
        for live in list(islice(self._unsaved, limit)):
            self._save(live)
        return bool(self._unsaved)

    def _save(self, live: Live) -> None:
        """Save a session with the calls that ended in it."""
        del self._unsaved[live]
        if self.is_there(live):
            self._writing.note_ended(live)
            self.append(self._written(live, self.noted(live)))

    def use(self, live: Live, request: Request, now_ms: int) -> None:
        """Note that a call uses a session; record it every `USE_NOTED_MS`, apart from the content, which others may change.

        The first call that names a session stores it even if it adds nothing: that binds the session to its user for good.
        """
        live.used_at = now_ms
        if live.is_gone:
            return
        if is_new(live, request):
            self.append(self.saved(live))
        if now_ms - live.noted_at >= USE_NOTED_MS:
            live.noted_at = now_ms
            if live.is_stored and now_ms - live.session.used_at >= USE_NOTED_MS:
                self._journal.append((Saved(Document.USE, live.key, now_ms, b""),))

    def resume(self, live: Live) -> None:
        """Resume a session, even an expired one."""
        self._resume(live)
        live.used_at = live.session.used_at
        self.append(self.saved(live))

    def _resume(self, live: Live) -> None:
        live.session = core.resume(live.session, self._now_ms())
        self._writing.note(live, lambda session: core.resume(session, self._now_ms()))

    def forget(self, tenant_id: str, session_id: str) -> None:
        """Drop a session from memory; it is read again when it is needed."""
        live = self._live.get((tenant_id, session_id))
        if live is not None and live in self._unsaved:
            self._save(live)
        self._let_go(tenant_id, session_id)

    def rest(self, live: Live) -> None:
        """Note that the call of this implicit session has ended."""
        if self._writing.may_drop(live):
            super().rest(live)

    def pruned(self, keys: Iterable[str]) -> None:
        """Drop sessions that retention removed from the store. Save a session again if a call began to use it meanwhile."""
        in_use = {call.live for call in self._calls.values()}
        for key in keys:
            tenant_id, _, session_id = key.partition(SEPARATOR)
            live = self._live.get((tenant_id, session_id))
            if live is None:
                continue
            if live not in in_use and self._journal.load(Document.SESSION, key) is None:
                self._let_go(tenant_id, session_id)
                self._lose(live)
                continue
            live.vault_saved = 0
            live.standing.base = live.standing.vault_base = NEVER
            live.standing.is_written = False
            self.put_parts(live, Parts())  # all of its rows are gone
            self._resume(live)  # replaces a head that was written meanwhile
            self.append(self.saved_vault(live) or self.saved(live))

    def drop(self, tenant_id: str, session_id: str) -> None:
        """Drop an erased session; code that still refers to it can add nothing to it."""
        live = self._let_go(tenant_id, session_id)
        if live is not None:
            self._lose(live)

    def _lose(self, live: Live) -> None:
        live.is_gone = True
        live.ended = live.answers = live.noted = None

    def _now_ms(self) -> int:
        return self._clock.now_ns() // NS_PER_MS

    def _noted_at(self, key: str) -> int:
        stored = self._journal.load(Document.USE, key)
        return 0 if stored is None else stored[0]


def says(request: Request, reply: Reply) -> bool:
    """Return whether a call and its reply are a conversation with a user, which the session saves turn by turn."""
    return core.is_first(request) and bool(request.message or reply.message)


def is_new(live: Live, request: Request) -> bool:
    """Return whether a call is the first to name a session, which is then stored even if the call adds nothing."""
    return not live.is_stored and request.session_id != request.root_id


def _new(tenant_id: str, user_id: str, session_id: str, now_ms: int, parent_id: str = "") -> Session:
    return Session(id=session_id, tenant_id=tenant_id, user_id=user_id, created_at=now_ms, used_at=now_ms, parent_id=parent_id)


def _is_said(session: Session, said: core.Say) -> bool:
    """Return whether a session already has the turn that the end of a call adds."""
    turns = reversed(session.turns) if said.request_id else ()
    return any(turn.request_id == said.request_id and turn.role == said.role and turn.text == said.text for turn in turns)


def _is_of(turn: Turn, said: core.Say, *, is_again: bool = False) -> bool:
    """Return whether a turn is the one of this call, even if it has other tokens for hidden values.

    Turns of older stores do not name their call: for a replayed call (`is_again`) they are compared by text.
    """
    is_same = turn.request_id == said.request_id if turn.request_id else is_again and turn.text == said.text
    return is_same and turn.role == said.role
