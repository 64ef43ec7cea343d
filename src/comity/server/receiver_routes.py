"""The routes of receivers and of what is remembered: their part of the table."""

from __future__ import annotations

from functools import partial
from typing import Final

from comity.core.access import Right
from comity.server import handoffs, memory, receivers
from comity.server.calls import AfterQuery
from comity.server.routes import Route

EVENTS: Final = "text/event-stream"
# Error codes that a receiver may get about its lease, and a client that hands work off about its request.
LEASED: Final = ("HANDOFF_LEASE_LOST", "HANDOFF_STATE_CONFLICT", "HANDOFF_ENDED", "HTTP_RESOURCE_UNKNOWN")
HANDED: Final = (
    "INPUT_VALIDATION_FAILED",
    "ROUTING_UNKNOWN_AGENT",
    "LIMIT_DEADLINE_PASSED",
    "BUDGET_CALLS_EXHAUSTED",
    "SESSION_ERASED",
    "AGENT_BUSY",
    "IDENTITY_MISMATCH",
)

# A request of a receiver, or of a client that hands work off.
_asked = partial(Route, method="POST", right=Right.HANDOFFS_WRITE, tag="receivers")

RECEIVERS: Final = (
    _asked(
        path="/v1/handoffs",
        name="create_handoff",
        handler=receivers.create,
        summary="Hand work off to an agent, or to any that has the capability",
        body=receivers.CreateBody,
        answer=handoffs.HandoffView,
        codes=HANDED,
    ),
    _asked(
        path="/v1/receivers/{agent_id}/take",
        name="take_handoffs",
        handler=receivers.take,
        summary="Wait for work and accept it in the same step",
        body=receivers.TakeBody,
        answer=receivers.Taken,
        codes=("AGENT_BUSY", "INPUT_VALIDATION_FAILED", "IDENTITY_MISMATCH"),
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/accept",
        name="accept_handoff",
        handler=receivers.accept,
        summary="Take a handoff; of several receivers one gets it",
        body=receivers.AcceptBody,
        answer=receivers.Leased,
        codes=("HANDOFF_UNKNOWN", "HANDOFF_TAKEN", "HANDOFF_ENDED", "INPUT_VALIDATION_FAILED", "AGENT_BUSY"),
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/reject",
        name="reject_handoff",
        handler=receivers.reject,
        summary="Say that it is not for this receiver; it ends",
        body=receivers.RejectBody,
        answer=handoffs.HandoffView,
        codes=("HANDOFF_UNKNOWN", "HANDOFF_TAKEN", "HANDOFF_ENDED", "INPUT_VALIDATION_FAILED", "AGENT_BUSY"),
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/heartbeat",
        name="beat_handoff",
        handler=receivers.heartbeat,
        summary="Say that the receiver still works on it",
        body=receivers.LeaseBody,
        answer=receivers.Beat,
        codes=LEASED,
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/progress",
        name="progress_handoff",
        handler=receivers.progress,
        summary="Tell how far it is",
        body=receivers.ProgressBody,
        answer=receivers.Beat,
        codes=(*LEASED, "INPUT_VALIDATION_FAILED"),
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/ask",
        name="ask_handoff",
        handler=receivers.question,
        summary="Ask the agent that handed the work off, and wait for the answer",
        body=receivers.QuestionBody,
        answer=receivers.Answered,
        codes=(*LEASED, "INPUT_VALIDATION_FAILED"),
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/complete",
        name="complete_handoff",
        handler=receivers.complete,
        summary="End it with a result",
        body=receivers.CompleteBody,
        answer=handoffs.HandoffView,
        codes=(*LEASED, "INPUT_VALIDATION_FAILED", "OUTPUT_VALIDATION_FAILED", "OUTPUT_TOO_LARGE"),
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/fail",
        name="fail_handoff",
        handler=receivers.fail,
        summary="End it without a result",
        body=receivers.FailBody,
        answer=handoffs.HandoffView,
        codes=(*LEASED, "INPUT_VALIDATION_FAILED"),
    ),
    _asked(
        path="/v1/handoffs/{handoff_id}/release",
        name="release_handoff",
        handler=receivers.release,
        summary="Give it back to the next receiver",
        body=receivers.LeaseBody,
        answer=handoffs.HandoffView,
        codes=LEASED,
    ),
    Route(
        method="GET",
        path="/v1/handoffs/{handoff_id}/events",
        name="follow_handoff",
        right=Right.READ,
        handler=receivers.follow,
        tag="receivers",
        summary="Follow a handoff until it has ended (server-sent events)",
        query=AfterQuery,
        answer=str,
        media_type=EVENTS,
        codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="GET",
        path="/v1/receivers/{agent_id}/handoffs",
        name="watch_handoffs",
        right=Right.HANDOFFS_WRITE,
        handler=receivers.watch,
        tag="receivers",
        summary="Follow what waits for a receiver (server-sent events)",
        query=receivers.WatchQuery,
        answer=str,
        media_type=EVENTS,
        codes=("AGENT_BUSY", "INPUT_VALIDATION_FAILED", "IDENTITY_MISMATCH"),
    ),
)

MEMORY: Final = (
    Route(
        method="GET",
        path="/v1/memory/{user_id}",
        name="show_memory",
        right=Right.DATA_REVEAL,
        handler=memory.show,
        tag="memory",
        summary="What is remembered of a user across sessions",
        answer=memory.MemoryView,
        codes=("IDENTITY_INVALID",),
    ),
    Route(
        method="DELETE",
        path="/v1/memory/{user_id}",
        name="erase_memory",
        right=Right.DATA_ERASE,
        handler=memory.erase,
        tag="memory",
        summary="Forget everything that is remembered of a user",
        answer=memory.Erased,
        codes=("IDENTITY_INVALID",),
    ),
    Route(
        method="PUT",
        path="/v1/memory/{user_id}/{fact_id}",
        name="correct_memory",
        right=Right.DATA_REVEAL,
        handler=memory.correct,
        tag="memory",
        summary="Correct what is remembered",
        body=memory.CorrectBody,
        answer=memory.FactView,
        codes=("HTTP_RESOURCE_UNKNOWN", "INPUT_VALIDATION_FAILED"),
    ),
    Route(
        method="DELETE",
        path="/v1/memory/{user_id}/{fact_id}",
        name="forget_memory",
        right=Right.DATA_ERASE,
        handler=memory.forget,
        tag="memory",
        summary="Forget one thing that is remembered",
        answer=memory.Erased,
        codes=("HTTP_RESOURCE_UNKNOWN", "IDENTITY_INVALID"),
    ),
)
