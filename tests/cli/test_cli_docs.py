"""`docs/cli.md` and the command line say the same."""

import argparse
import re
import shlex
from pathlib import Path

from comity.cli.main import COMMANDS, build_parser, leaves, options
from comity.cli.ui.exits import MEANINGS
from comity.loading.registry_file import AgentEntry, CapabilityEntry, ImplementationEntry, load_agents
from comity.loading.strict_file import MANIFEST_BYTES_MAX, MANIFEST_NESTING_MAX

DOC = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def sections():
    """Return the text of each `### comity …` section by its command."""
    parts = re.split(r"^### `comity ([^`]+)`$", DOC, flags=re.MULTILINE)
    return {command_of(name): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def command_of(heading):
    """Return the words of a heading before its arguments."""
    return re.split(r" \[| [A-Z]", heading)[0]


def test_every_command_has_a_section_and_every_section_a_command():
    commands = {leaf.prog.removeprefix("comity ") for leaf in leaves(build_parser())}
    assert set(sections()) == commands
    assert {name.split()[0] for name in commands} == set(COMMANDS)


def test_the_exit_codes_are_those_of_the_program():
    table = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.+?) \|$", DOC, flags=re.MULTILINE)}
    assert table == {int(code): meaning for code, meaning in MEANINGS.items()}


def test_every_option_is_documented_where_it_belongs():
    parser = build_parser()
    common = set(options(parser)) - {"-h", "--help"}
    top = DOC.split("### `comity")[0]
    for option in common:
        assert f"`{option}" in top, option
    for leaf in leaves(parser):
        text = sections()[leaf.prog.removeprefix("comity ")]
        own = set(options(leaf)) - common - {"-h", "--help"}
        documented = set(re.findall(r"`(--[a-z-]+)", text))
        assert own <= documented, leaf.prog
        assert documented <= own | common, leaf.prog


def test_every_argument_is_named_in_the_heading_of_its_command():
    headings = {line.removeprefix("### `comity ").rstrip("`") for line in DOC.splitlines() if line.startswith("### `comity ")}
    for leaf in leaves(build_parser()):
        name = leaf.prog.removeprefix("comity ")
        (heading,) = (one for one in headings if command_of(one) == name)
        for action in leaf._actions:
            if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
                assert str(action.metavar) in heading


def test_the_registry_file_of_the_documentation_loads_and_has_every_field(tmp_path):
    (text,) = re.findall(r"^```yaml\n(.*?)^```", DOC, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "registry.yaml").write_text(text, encoding="utf-8")
    (agent,) = load_agents(tmp_path / "registry.yaml")
    assert agent.capabilities["ANL_NPV"].implementations[0].retry.attempts == 3
    for entry in (AgentEntry, CapabilityEntry, ImplementationEntry):
        for field in entry.__struct_fields__:
            assert re.search(rf"^[ -]*{field}:", text, flags=re.MULTILINE) or f"`{field}`" in text, field


def test_the_bounds_of_a_registry_file_are_those_of_the_program():
    assert f"{MANIFEST_BYTES_MAX // 1024**2} MiB and {MANIFEST_NESTING_MAX} levels" in DOC


def test_the_first_steps_of_the_documentation_work(comity, monkeypatch):
    (block,) = re.findall(r"^```\n(.*?)^```", DOC, flags=re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        command, *words = shlex.split(line.removeprefix("$ "))
        if command == "export":
            monkeypatch.setenv(*words[0].split("="))
        else:
            assert comity(*words).code == 0, line
