"""The workflows that a node is given when it is made."""

from __future__ import annotations

import asyncio
import json

import pytest

from comity import Node
from comity.workflow import DefinitionError, load

TEXT = "workflow: {}\nnodes:\n  a: {{set: {{n: 1}}}}\n"


async def test_a_node_runs_the_workflows_it_was_given_as_definitions_files_and_texts(make_node, tmp_path):
    (tmp_path / "b.yaml").write_text(TEXT.format("b"))
    (tmp_path / "c.json").write_text(json.dumps({"workflow": "c", "nodes": {"a": {"set": {"n": 1}}}}))
    given = [load(TEXT.format("a")), tmp_path / "b.yaml", str(tmp_path / "c.json"), TEXT.format("d")]
    async with make_node(workflows=given) as node:
        node.add_workflows(TEXT.format("e"))
        for name in "abcde":
            assert (await node.workflows.run(name, user_id="u")).ok
        assert sorted(node.workflows.definitions) == list("abcde")


def test_a_node_of_the_same_agents_on_another_store_has_the_same_workflows(tmp_path):
    async def main():
        given = Node(workflows=[TEXT.format("a")])
        given.add_workflows(TEXT.format("b"))
        async with given.elsewhere(tmp_path / "s.db") as node:
            assert (await node.workflows.run("a", user_id="u")).ok
            assert sorted(node.workflows.definitions) == ["a", "b"]

    asyncio.run(main())


def test_a_workflow_with_mistakes_and_a_file_that_is_not_there_are_told_when_the_node_is_made(tmp_path):
    with pytest.raises(DefinitionError, match="nodes"):
        Node(workflows=["workflow: w\nnods: {}\n"])
    with pytest.raises(FileNotFoundError):
        Node(workflows=["missing.yaml"])
