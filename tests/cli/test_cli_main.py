"""The front door: usage, help, options anywhere, exit codes, and failures without tracebacks."""

import os
import re
import subprocess
import sys

import pytest
import warm

from comity import __version__
from comity.cli.main import COMMANDS, build_parser, fold_json, leaves, options
from comity.cli.ui.exits import MEANINGS, Exit


def test_help_names_every_command_and_every_exit_code(comity):
    ran = comity("--help")
    assert ran.code == 0
    for name in COMMANDS:
        assert f"\n    {name} " in ran.out
    for code, meaning in MEANINGS.items():
        assert f"{int(code):>3}  {meaning}" in ran.out


def test_every_exit_code_has_a_meaning():
    assert set(MEANINGS) == set(Exit)


def test_without_a_command_the_help_is_shown(comity):
    assert comity().out == comity("--help").out


def test_the_version_is_told(comity):
    assert comity("--version").out == f"comity {__version__}\n"


def test_help_imports_nothing_that_is_slow():
    code = (
        "import sys; from comity.cli.main import main; main(['--help'])\n"
        "print([name for name in ('rich', 'yaml', 'pydantic', 'comity.demo') if name in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n"


@pytest.mark.parametrize("module", ["comity", "comity.cli.main"])
def test_the_command_runs_as_a_module(module):
    ran = subprocess.run([sys.executable, "-m", module, "agnets"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "did you mean 'agents'?" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["agnets"], "unknown command 'agnets'; did you mean 'agents'?"),
        (
            ["qqq"],
            f"unknown command 'qqq'; choose from {', '.join(COMMANDS)}",
        ),
        (["audit", "verfy"], "unknown action 'verfy'; did you mean 'verify'?"),
        (["calls", "--limt", "3"], "'--limt' is not expected here; did you mean --limit"),
        (["call", "WORK"], "the following arguments are required: CAPABILITY\n"),
        (["calls", "--limit", "0"], "argument --limit: must be at least 1"),
        (["call", "A", "B", "--timeout-ms", "0"], "argument --timeout-ms: must be at least 1"),
        (["calls", "--limit", "many"], "argument --limit: "),
        (["--timeout-ms", "soon", "calls"], "argument --timeout-ms: must be a whole number, not 'soon'"),
        (["doctor", "extra"], "'extra' is not expected here"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(comity, arguments, told):
    ran = comity(*arguments)
    assert ran.code == 2
    assert told in ran.err
    assert ran.out == ""
    assert "--help`" in ran.err


@pytest.mark.parametrize(
    "words", [["audit"], ["handoff"], ["sessions"], ["approvals"], ["guidance"], ["guidance", "set"], ["spans"]]
)
def test_a_command_without_its_verb_lists_the_verbs(comity, words):
    ran = comity(*words)
    assert (ran.code, ran.err) == (2, "")
    parser = next(one for one in walk(build_parser()) if one.prog == " ".join(["comity", *words]))
    verbs = next(action for action in parser._actions if action.choices).choices
    assert all(re.search(rf"^    {verb}\b", ran.out, flags=re.MULTILINE) for verb in verbs)
    assert comity(*words, "--json").document["error"]["message"] == f"`comity {' '.join(words)}` needs a verb"


def walk(parser):
    """Yield a parser and all below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                yield from walk(below)


def test_help_texts_fit_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for parser in walk(build_parser()):
        text = parser.format_help()
        too_long = [line for line in text.splitlines() if len(line) > 80 and "comity " not in line]
        assert not too_long, parser.prog


def test_wrong_usage_with_json_is_a_document_too(comity):
    ran = comity("agnets", "--json")
    assert ran.code == 2
    assert ran.err == ""
    assert ran.document["exit_code"] == 2
    assert "did you mean 'agents'?" in ran.document["error"]["message"]


def test_options_may_stand_before_or_after_the_command(comity, app):
    before = comity("--json", "--user", "ada", "call", "WORK", "GREET", "name=Bob").document
    after = comity("call", "WORK", "GREET", "name=Bob", "--json", "--user", "ada").document
    assert before["data"] == after["data"] == "hello Bob"
    users = {call["user_id"] for call in comity("--json", "calls").document["calls"]}
    assert users == {"ada"}


def test_every_command_takes_the_common_options():
    parser = build_parser()
    expected = {"--app", "--store", "--json", "--user", "--timeout-ms", "--no-color", "--verbose"}
    for leaf in [parser, *leaves(parser)]:
        assert expected <= {name for action in leaf._actions for name in action.option_strings}, leaf.prog


@pytest.mark.parametrize(
    ("given", "folded"),
    [
        (["--json", '{"a":1}'], ["--json", "--inputs", '{"a":1}']),
        (["--json", "-"], ["--json", "--inputs", "-"]),
        (["--json", "[1]"], ["--json", "--inputs", "[1]"]),
        (['--json={"a":1}'], ["--json", "--inputs", '{"a":1}']),
        (["--json", "a=1"], ["--json", "a=1"]),
        (["--json", "calls"], ["--json", "calls"]),
        (["--json"], ["--json"]),
    ],
)
def test_a_document_after_json_is_the_inputs(given, folded):
    assert fold_json(given) == folded


def test_without_an_app_the_way_to_one_is_told(comity):
    for command in (["agents"], ["call", "A", "B"]):
        ran = comity(*command)
        assert ran.code == 2
        assert "no agents are configured" in ran.err
        assert "--app comity.demo:agents" in ran.err


def test_modules_of_the_working_directory_are_found_however_the_command_was_started(place):
    command = [sys.executable, "-P", "-m", "comity", "agents", "--app", "app:make"]  # -P: no directory is added by Python
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "BOSS" in ran.stdout, ran.stderr


def test_a_bad_app_says_what_is_wrong_and_hides_the_traceback(comity, place):
    (place / "bad_app.py").write_text("1/0", encoding="utf-8")
    ran = comity("agents", "--app", "bad_app:agents")
    assert ran.code == 2
    assert "importing bad_app raised ZeroDivisionError: division by zero" in ran.err
    assert "--verbose shows the traceback" in ran.err
    assert "Traceback" not in ran.err


def test_verbose_shows_the_traceback_of_the_users_own_code(place):
    (place / "bad_app.py").write_text("1/0", encoding="utf-8")
    ran = warm.run([sys.executable, "-m", "comity", "agents", "--app", "bad_app:agents", "--verbose"])
    assert ran.returncode == 2
    assert "bad_app.py" in ran.stderr
    assert "Traceback" in ran.stderr


def test_the_problems_of_a_registry_file_are_a_list_in_json(comity, place):
    (place / "r.yaml").write_text("agents: [{id: A, ownr: x}, {}]", encoding="utf-8")
    ran = comity("agents", "--app", "r.yaml", "--json")
    assert ran.code == 2
    assert {problem["path"] for problem in ran.document["error"]["problems"]} == {"agents[0].ownr", "agents[1].id"}


@pytest.mark.parametrize("form", [["--json"], []], ids=["JSON", "text"])
def test_a_reader_that_has_seen_enough_is_no_failure(place, form):
    source = "from comity import Agent\nagents = [Agent(f'A{n}', description='x' * 200) for n in range(700)]"
    (place / "many.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "comity", "agents", "--app", "many:agents", *form]
    with warm.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["calls", "--json"], 1, "[Errno 28] No space left on device"),
        (["calls"], 1, "[Errno 28] No space left on device"),
        (["calls", "--store", "no.db", "--json"], 4, "the store no.db does not exist"),
        (["--help"], 1, "[Errno 28] No space left on device"),
    ],
    ids=["JSON", "text", "JSON error", "help"],
)
def test_output_that_cannot_be_written_is_one_sentence_and_no_success(used, arguments, code, told, unbuffered):
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "comity", *arguments]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment, check=False)
        if arguments == ["calls"]:
            deaf = subprocess.run(command, stdout=full, stderr=full, env=environment, check=False)
            assert deaf.returncode == code
    assert ran.returncode == code
    assert ran.stderr.startswith(f"error: {told}\n")
    assert ran.stderr.count("error") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["calls", "--limit", "x"], "must be a whole number, not 'x'"),
        (["calls", "--limit", "-3"], "must be at least 1"),
        (["insights", "--min-confidence", "7"], "must be a number from 0 to 1, not '7'"),
        (["insights", "--min-confidence", "nan"], "must be a number from 0 to 1, not 'nan'"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_in_words(comity, arguments, told):
    ran = comity(*arguments)
    assert (ran.code, told in ran.err) == (2, True)


@pytest.fixture(scope="module")
def every_leaf():
    """The parsers of all commands, which take 60 ms to make."""
    return leaves(build_parser())


@pytest.mark.parametrize(
    "option", ["--store", "--app", "--guidance", "--project", "--tempo", "--to", "--from", "--agent", "--tenant"]
)
def test_an_option_that_is_given_empty_is_wrong_usage_at_every_command_that_takes_it(comity, option, every_leaf):
    for leaf in every_leaf:
        if option not in options(leaf):
            continue
        arguments = [one for one in leaf._actions if not one.option_strings and one.nargs not in ("*", "?")]
        needed = [str(one.choices[0]) if one.choices else "x" for one in arguments]
        ran = comity(*leaf.prog.split()[1:], *needed, option, "")
        assert (ran.code, f"argument {option}: is empty" in ran.err) == (2, True), leaf.prog


@pytest.mark.parametrize("what", ["folder", ".", "desk.py"])
@pytest.mark.parametrize(
    "command",
    [
        ["guidance", "answer", "q", "because"],
        ["trace", "last"],
        ["query", "{}"],
        ["insights"],
        ["view"],
        ["spans", "serve", "--port", "0"],
        ["call", "WORK", "GREET", "name=Ada"],
        ["demo"],
        ["handoff", "create", "GREET", "--to", "WORK"],
        ["handoff", "watch", "WORK"],
        ["calls"],
        ["doctor"],
    ],
    ids=" ".join,
)
def test_what_is_not_a_store_is_taken_for_one_by_no_command(comity, app, place, command, what):
    (place / "folder").mkdir()
    (place / "desk.py").write_text("desk = 1\n", encoding="utf-8")
    assert comity("guidance", "ask", "Why?", "--id", "q").code == 0
    before = sorted(place.iterdir())
    ran = comity(*command, "--store", what)
    assert (ran.code, what in ran.out + ran.err) == (5, True)
    assert sorted(one for one in place.iterdir() if one.name != "__pycache__") == before


def test_an_environment_variable_that_is_empty_counts_as_not_set(comity, app, monkeypatch):
    for name in ("COMITY_STORE", "COMITY_GUIDANCE", "COMITY_PROJECT"):
        monkeypatch.setenv(name, "")
    assert comity("guidance", "show", "--json").document["guidance"] == ".comity/default.yaml"
    assert comity("call", "WORK", "GREET", "name=Ada").code == 0
    assert comity("calls", "--json").document["store"] == "comity.db"
    monkeypatch.setenv("COMITY_APP", "")
    assert "no agents are configured" in comity("agents").err


def test_output_that_is_closed_or_cannot_show_a_character_is_no_failure(place):
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    (place / "r.yaml").write_text("agents: [{id: A, description: 'naïve → [b]'}]", encoding="utf-8")
    command = [sys.executable, "-m", "comity", "agents", "--app", "r.yaml"]
    ran = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert ran.returncode == 0
    assert b"na\\xefve \\u2192 [b]" in ran.stdout
    closed = subprocess.run(["/bin/sh", "-c", '"$@" >&-', "sh", *command, "--json"], capture_output=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_errors_as_json_carry_the_code_of_the_error_table_where_there_is_one(comity, place):
    assert comity("guidance", "show", "--project", "../x", "--json").document["error"]["code"] == "INPUT_VALIDATION_FAILED"
    (place / "folder").mkdir()
    ran = comity("guidance", "show", "--guidance", "folder", "--json")
    assert (ran.code, ran.document["error"]["code"]) == (5, "STORE_UNAVAILABLE")
    assert comity("no-such-command", "--json").document["error"]["code"] is None


def test_a_hint_is_about_what_was_wrong(comity, app, place):
    assert "shows what GREET takes" in comity("call", "WORK", "GREET").out
    for wrong in (["--timeout-ms", "-5"], ["--user", ""], ["--request-id", ""]):
        ran = comity("call", "WORK", "GREET", "name=Ada", *wrong)
        assert (ran.code, "shows what GREET takes" in ran.out) == (2, False)
    (place / "folder").mkdir()
    told = comity("guidance", "show", "--guidance", "folder").err
    assert told == "error: cannot read folder: Is a directory\n--guidance or COMITY_GUIDANCE names other guidance.\n"
    (place / "mine.md").write_text("my own", encoding="utf-8")
    demo = comity("demo", "--out", "mine.md")
    assert demo.err.endswith("mine.md exists and is not a document of this demo; name another file\n")


def test_a_name_that_cannot_be_shown_is_quoted_once(comity, app):
    assert "no agent 'WORK/\\x1b[31m'" in comity("call", "WORK/\x1b[31m", "GREET").out


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (["-m", "comity"], ["calls"]),
        (["-m", "comity"], ["agents", "--app", "mine:agents"]),
        (["-c", "from comity.cli.main import main; raise SystemExit(main())"], ["doctor"]),
        (["-c", "from comity.cli.main import main; raise SystemExit(main())"], ["agents", "--app", "mine:agents"]),
    ],
)
def test_no_command_runs_code_that_lies_in_the_working_directory(place, start, words):
    for name in ("rich", "yaml", "msgspec", "sqlite3", "comity_plugins"):
        (place / f"{name}.py").write_text("print('PWNED')\n")
    (place / "mine.py").write_text("from comity import Agent\nagents = [Agent('A')]\n")
    safe = [] if start[0] == "-m" else ["-P"]  # `-c` puts the working directory first by itself, an installed script does not
    ran = subprocess.run([sys.executable, *safe, *start, *words], capture_output=True, text=True, check=False, timeout=60)
    assert "PWNED" not in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    if "--app" in words:
        assert "\nA " in ran.stdout


def test_commands_that_look_at_a_store_load_nothing_that_is_slow_to_load(used, place):
    """They are to answer in a third of a second, most of which is loading."""
    slow = {"asyncio", "comity.core.redaction", "comity.node.node", "importlib.metadata", "pydantic_core", "statistics"}
    code = (
        "import sys; from comity.cli.main import main\n"
        "for words in ('calls', 'show last', 'sessions list', 'doctor', 'audit verify'):\n"
        "    assert main(words.split()) == 0, words\n"
        f"assert not sys.modules.keys() & {slow}, sys.modules.keys() & {slow}\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "COMITY_APP"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=place, stdout=subprocess.DEVNULL)
