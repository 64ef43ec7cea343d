"""Workflows: definitions as data or by the builder, their checks, and what `node.workflows` returns."""

from __future__ import annotations

from comity.core.workflow.builder import NodeRef, Ref, Workflow
from comity.core.workflow.check import Catalog, Offer, check, check_text
from comity.core.workflow.fields import json_schema
from comity.core.workflow.model import END, START, Definition, content_hash
from comity.core.workflow.read import DefinitionError, definition_of, load
from comity.core.workflow.replay import Difference, Moment
from comity.core.workflow.source import Mistake
from comity.core.workflow.why import Decision
from comity.runtime.workflow.handle import RunHandle
from comity.runtime.workflow.store import Question, RunRecord, Status
from comity.runtime.workflow.watching import RunEvent
from comity.runtime.workflow.workflows import Workflows

__all__ = [
    "END",
    "START",
    "Catalog",
    "Decision",
    "Definition",
    "DefinitionError",
    "Difference",
    "Mistake",
    "Moment",
    "NodeRef",
    "Offer",
    "Question",
    "Ref",
    "RunEvent",
    "RunHandle",
    "RunRecord",
    "Status",
    "Workflow",
    "Workflows",
    "check",
    "check_text",
    "content_hash",
    "definition_of",
    "json_schema",
    "load",
]
