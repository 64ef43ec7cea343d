"""A node that is done once for each item of a list: how many at a time, how many may fail, and what comes of all of them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from comity.core.expression import EvaluationError
from comity.core.workflow import response
from comity.core.workflow.ending import Endings
from comity.core.workflow.graph import GraphNode
from comity.core.workflow.mapping import MappingError
from comity.core.workflow.model import MAP_ITEMS_MAX
from comity.core.workflow.scope import Activity, Each


class Maps(Endings):
    """The part of the planner that maps a node over a list."""

    @abstractmethod
    def start_work(self, activity: Activity) -> None:
        """Make the call of a node or an item, or begin its sub-workflow."""

    @abstractmethod
    def node_done(self, activity: Activity, found: dict[str, Any]) -> None:
        """Settle the node of an activation."""

    def start_map(self, activity: Activity) -> None:
        """Begin a map with as many items as may run at a time."""
        node, scope = activity.node, activity.scope
        assert node.spec.each is not None
        items = node.spec.each.over if node.over is None else node.over(scope.variables)
        if not isinstance(items, list):
            raise MappingError(f"`over` of {node.spec.name} is no list")
        if len(items) > MAP_ITEMS_MAX:
            raise MappingError(f"`over` of {node.spec.name} has {len(items)} items; at most {MAP_ITEMS_MAX} are allowed")
        activity.each = Each(items, [None] * len(items))
        activity.items = {}
        if not items:
            self._map_done(activity)
            return
        self._next_items(activity)

    def _next_items(self, activity: Activity) -> None:
        each, spec = activity.each, activity.node.spec.each
        assert each is not None and spec is not None and activity.items is not None  # noqa: PT018
        while each.running < spec.concurrency and each.next < len(each.items) and not each.is_stopped:
            index, each.next = each.next, each.next + 1
            each.running += 1
            item = Activity(activity.scope, activity.node, f"{activity.place}[{index}]", {}, item_of=activity, index=index)
            activity.items[item] = None
            try:
                self.start_work(item)
            except (MappingError, EvaluationError) as error:
                self.work_done(item, unmapped(activity.node, error))
            if activity.scope.ending is not None:
                return

    def item_done(self, item: Activity, found: dict[str, Any]) -> None:
        """Take what one item gave: begin the next, or end the map."""
        activity = item.item_of
        assert activity is not None and activity.each is not None and activity.items is not None  # noqa: PT018
        each, spec = activity.each, activity.node.spec.each
        assert spec is not None
        activity.items.pop(item, None)
        each.running -= 1
        each.replies[item.index] = found
        if found["status"] not in response.OK:
            each.failed += 1
            each.first_error = each.first_error or found.get("error")
            if each.failed > spec.tolerate and not each.is_stopped:
                each.is_stopped = True
                for one in list(activity.items):
                    self.stop_activity(one)
        if not each.is_stopped:
            self._next_items(activity)
        if activity.each is each and not each.running and (each.is_stopped or each.next == len(each.items)):
            self._map_done(activity)

    def _map_done(self, activity: Activity) -> None:
        each, spec = activity.each, activity.node.spec
        assert each is not None and spec.each is not None  # noqa: PT018
        replies, activity.each = each.replies, None
        if each.failed > spec.each.tolerate:
            error = each.first_error or {}
            told = f"{each.failed} of {len(replies)} items of {spec.name} failed"  # an error may have the text of an exception
            what = f"{told}, first: {error.get('message', '')}"
            found = {**response.failure(error.get("code", "TARGET_FAILED"), what), "message": told}
        elif each.is_stopped:
            found = response.failure("CALL_CANCELLED", f"{spec.name} was stopped")
        else:
            data = [None if one is None else one.get("data") for one in replies]
            known = [one["confidence"] for one in replies if one is not None and "confidence" in one]
            found = response.success(data, **({"confidence": min(known)} if known else {}))
            missing = [index for index, one in enumerate(replies) if one is None or one["status"] not in response.OK]
            partial = any(one is not None and one["status"] == "partial" for one in replies)
            if missing or partial:
                found["status"] = found["outcome"] = "partial"
                said = [f"item {index} failed" for index in missing] or ["some items are partial"]
                found["warnings"] = said[:100]
        self.node_done(activity, found)


def is_stopped(item: Activity) -> bool:
    """Return whether the map of an item begins no more items."""
    return item.item_of is not None and item.item_of.each is not None and item.item_of.each.is_stopped


def unmapped(node: GraphNode, error: Exception) -> dict[str, Any]:
    """Return the failure of a node whose mapping has no value."""
    return response.failure("WORKFLOW_MAPPING_FAILED", f"a mapping of {node.spec.name} has no value: {error}")
