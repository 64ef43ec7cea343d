"""Calls that agents of other nodes make on this node: as documents in a dialect, or in our own envelope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from comity.core.call.outside import Outside
from comity.core.envelope.envelope import Reply, Request
from comity.node.hosting import Hosting
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft, Identity
from comity.runtime.call.events import EventLog
from comity.runtime.call.handle import CallHandle
from comity.runtime.tracing.standing import joined

if TYPE_CHECKING:
    from comity.core.call.admission import Refused

Header = str | Sequence[str] | None


class Outsiders(Hosting):
    """The doors of a node for agents of other nodes, whose identity a server has proved."""

    async def answer_document(
        self,
        document: Any,
        *,
        dialect: str,
        identity: Identity,
        capability: str = "message",
        request_id: str | None = None,
        token: str | None = None,
        outside: Outside | None = None,
        check: Callable[[Request], Refused | None] | None = None,
        traceparent: Header = None,
        tracestate: Header = None,
    ) -> tuple[Reply, dict[str, Any]]:
        """Take a document and return the reply with the answer in its dialect.

        capability, request_id: what is meant where the dialect's documents name none.
        token: of a call under way that the document speaks for.
        outside: where the agent of another node stands that sent it.
        check: is asked about what the document claims, and returns the refusal of what is not so.
        """
        from comity.doors.documents import receive_document  # noqa: PLC0415  dialects are slow to import and rarely spoken

        path = self._path
        now_ms = path.now_ms()
        unsaid = {"request_id": request_id or path.ids.new_request(now_ms)[0], "capability": capability}
        remote = joined(traceparent, tracestate)
        return await receive_document(
            path, document, dialect, identity, unsaid, token=token, now_ms=now_ms, remote=remote, outside=outside, check=check
        )

    def start_outside(
        self, draft: Draft, identity: Identity, request_id: str, *, traceparent: Header = None, tracestate: Header = None
    ) -> CallHandle[Any]:
        """Begin a call for an agent of another node, or join the call that was begun under the same id.

        `draft.outside` says where the agent stands.
        """
        path, log = self._path, EventLog()
        remote = joined(traceparent, tracestate)
        if (errand := path.placement.start_root(draft, identity, request_id, remote, log)) is not None:
            return CallHandle(path, errand, log, request_id)
        opened = path.open_root(draft, identity, request_id, remote, log)
        if isinstance(opened, Call):
            opened.is_detached = True
            if opened.log is None:
                opened.watch(log)
            return CallHandle(path, opened, opened.log or log, request_id)
        log.close()
        return CallHandle(path, opened, log, request_id)
