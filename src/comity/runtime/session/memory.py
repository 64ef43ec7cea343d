"""What a node remembers of its users across sessions: kept in the store, in clear only for a call of that user.

The text of a fact is encrypted where it is stored, under a key outside the store. An agent sees it as it sees its session:
personal data as tokens of the session's vault, in clear only what its capability is granted.
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
        """Return what is remembered of a user now, also by other processes of the store."""
        return self._load(key_of(tenant_id, user_id))[1]

    def change(self, tenant_id: str, user_id: str, how: Callable[[Memory], Memory | None]) -> Memory | None:
        """Change what is remembered of a user and return it; None if `how` finds nothing to change."""
        key = key_of(tenant_id, user_id)
        version, memory = self._load(key)
        changed = how(memory)
        if changed is not None and changed != memory:
            self._journal.append(self._saved(key, version, changed))
        return changed

    def reported(self, request: Request, reply: Reply, vault: Vault | None, now_ms: int) -> tuple[Saved, ...]:
        """Return the record of what an agent found out about the user of its call; the store keeps it with the call's end."""
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
        except UnavailableError as error:  # the call ends all the same
            log.warning("what %s found out about its user is not remembered: %s", request.request_id, error)
            return ()
        changed = core.learn(memory, new)
        return () if changed == memory else self._saved(key, version, changed)

    def forget_session(self, tenant_id: str, user_id: str, session_id: str) -> None:
        """Forget what was last reported in a session."""
        key = key_of(tenant_id, user_id)
        found = self._journal.load(Document.MEMORY, key)
        if found is not None and (kept := without_session(found[1], session_id)) is not None:
            self._journal.append((Saved(Document.MEMORY, key, found[0] + 1, kept),))

    def erase(self, tenant_id: str, user_id: str) -> bool:
        """Forget everything; return whether there was anything. Nothing of it may be on its way to the store."""
        key = key_of(tenant_id, user_id)
        self._read.pop(key, None)
        return self._journal.remove(Document.MEMORY, key)

    def now_ms(self) -> int:
        """Return the time."""
        return self._clock.now_ns() // 1_000_000

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
    """What is remembered of one user, in clear, to be listed, corrected and erased. `node.memory(user_id)` is one."""

    __slots__ = ("_durable", "_memories", "tenant_id", "user_id")

    def __init__(self, memories: Memories, durable: Callable[[], Awaitable[None]], tenant_id: str, user_id: str) -> None:
        self._memories = memories
        self._durable = durable
        self.tenant_id = tenant_id
        self.user_id = user_id

    @property
    def facts(self) -> tuple[Fact, ...]:
        """What is known, each with id, source, confidence and time, oldest first."""
        return self._memories.of(self.tenant_id, self.user_id).facts

    @property
    def dropped(self) -> int:
        """How many facts there was no room for."""
        return self._memories.of(self.tenant_id, self.user_id).dropped

    def get(self, key: str) -> Fact | None:
        """What is known under a key (`key: value`); None if nothing is."""
        return self._memories.of(self.tenant_id, self.user_id).find(key)

    async def correct(self, fact_id: str, text: str, *, by: str) -> Fact | None:
        """Put a fact right, in the name of a person; no agent changes it any more. None if there is no such fact."""
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
