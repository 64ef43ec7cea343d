"""Memory of users across sessions, kept in the store and decrypted only for calls of that user.

The text of a fact is encrypted in the store, with a key outside it. An agent sees it as it sees its session: personal data as
tokens of the session's vault, in clear only the types that its capability is granted.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from comity.core.document.checks import take_text
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import Document, Saved
from comity.core.redaction import Vault, restore_text
from comity.core.session import memory as core
from comity.core.session.memory import Fact, Memory
from comity.core.units import NS_PER_MS
from comity.errors import UnavailableError
from comity.ports import Cipher, Clock, Journal
from comity.runtime.session.live import key_of
from comity.runtime.session.remembered import opened, sealed, without_session

log = logging.getLogger("comity")

READ_MAX: Final = 1_000  # users whose memory stays decrypted in this process


class Memories:
    """The memories of all users of a node's store."""

    def __init__(self, journal: Journal, clock: Clock, cipher: Cipher) -> None:
        self._journal = journal
        self._clock = clock
        self._cipher = cipher
        self._read: dict[str, tuple[bytes, Memory]] = {}  # as stored, and decrypted

    def of(self, tenant_id: str, user_id: str) -> Memory:
        """Return the current memory of a user, with changes by other processes of the store."""
        return self._load(key_of(tenant_id, user_id))[1]

    def change(self, tenant_id: str, user_id: str, how: Callable[[Memory], Memory | None]) -> Memory | None:
        """Replace the memory of a user by the result of `how` and return it; None if `how` returns None."""
        key = key_of(tenant_id, user_id)
        version, memory = self._load(key)
        changed = how(memory)
        if changed is not None and changed != memory:
            self._journal.append(self._saved(key, version, changed))
        return changed

    def reported(self, request: Request, reply: Reply, vault: Vault | None, now_ms: int) -> tuple[Saved, ...]:
        """Return the record of a reply's `new_facts` about the user, to be appended with the call's end."""
        source = request.target.partition("/")[0]
        new = [
            Fact(
                "",
                text if vault is None else restore_text(text, vault),
                source,
                reply.confidence or 0.0,
                now_ms,
                request.session_id,
                request.request_id,
            )
            for text in reply.new_facts[: core.REPORTED_MAX]
            if text.strip()
        ]
        key = key_of(request.tenant_id, request.user_id)
        try:
            version, memory = self._load(key)
        except UnavailableError as error:  # the call settles anyway
            log.warning("what %s found out about its user is not remembered: %s", request.request_id, error)
            return ()
        changed = core.learn(memory, new)
        return () if changed == memory else self._saved(key, version, changed)

    def forget_session(self, tenant_id: str, user_id: str, session_id: str) -> None:
        """Remove the facts that were last reported in a session."""
        key = key_of(tenant_id, user_id)
        found = self._journal.load(Document.MEMORY, key)
        if found is not None and (kept := without_session(found[1], session_id)) is not None:
            self._journal.append((Saved(Document.MEMORY, key, found[0] + 1, kept),))

    def erase(self, tenant_id: str, user_id: str) -> bool:
        """Erase the memory of a user; return whether there was any. No append of it may be pending."""
        key = key_of(tenant_id, user_id)
        self._read.pop(key, None)
        return self._journal.remove(Document.MEMORY, key)

    def now_ms(self) -> int:
        """Return the time in epoch milliseconds."""
        return self._clock.now_ns() // NS_PER_MS

    def _load(self, key: str) -> tuple[int, Memory]:
        found = self._journal.load(Document.MEMORY, key)
        if found is None:
            self._read.pop(key, None)
            return 0, Memory()
        version, raw = found
        known = self._read.get(key)
        if known is None or known[0] != raw:
            known = (raw, opened(self._cipher, key, raw))
            self._keep(key, known)
        return version, known[1]

    def _saved(self, key: str, version: int, memory: Memory) -> tuple[Saved, ...]:
        raw = sealed(self._cipher, key, memory)
        self._keep(key, (raw, memory))
        return (Saved(Document.MEMORY, key, version + 1, raw),)

    def _keep(self, key: str, known: tuple[bytes, Memory]) -> None:
        if len(self._read) >= READ_MAX:
            del self._read[next(iter(self._read))]
        self._read[key] = known


class UserMemory:
    """The memory of one user in clear, to be listed, corrected and erased; returned by `node.memory(user_id)`."""

    __slots__ = ("_durable", "_memories", "tenant_id", "user_id")

    def __init__(self, memories: Memories, durable: Callable[[], Awaitable[None]], tenant_id: str, user_id: str) -> None:
        self._memories = memories
        self._durable = durable
        self.tenant_id = tenant_id
        self.user_id = user_id

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts, each with id, source, confidence and time, oldest first."""
        return self._memories.of(self.tenant_id, self.user_id).facts

    @property
    def dropped(self) -> int:
        """How many facts there was no room for."""
        return self._memories.of(self.tenant_id, self.user_id).dropped

    def get(self, key: str) -> Fact | None:
        """Return the fact under a key (`key: value`), or None."""
        return self._memories.of(self.tenant_id, self.user_id).find(key)

    async def correct(self, fact_id: str, text: str, *, by: str) -> Fact | None:
        """Correct a fact in the name of a person, after which no agent can change it. Return None if there is no such fact."""
        now_ms, clear = self._memories.now_ms(), take_text(text, "text")
        changed = self._memories.change(
            self.tenant_id, self.user_id, lambda memory: core.correct(memory, fact_id, clear, by=by, now_ms=now_ms)
        )
        await self._durable()
        return None if changed is None else changed.get(fact_id)

    async def forget(self, fact_id: str) -> bool:
        """Forget a fact; return whether there was one."""
        has_fact = self._memories.of(self.tenant_id, self.user_id).get(fact_id) is not None
        self._memories.change(self.tenant_id, self.user_id, lambda memory: core.forget(memory, fact_id=fact_id))
        await self._durable()
        return has_fact

    async def erase(self) -> bool:
        """Forget everything, for good; return whether there was anything."""
        await self._durable()
        return self._memories.erase(self.tenant_id, self.user_id)
