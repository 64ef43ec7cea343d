"""How the tests of the command line run it: in this process, in a directory of its own, with nothing from the environment."""

import contextlib
import io
import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from comity.cli.main import main

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
APP = '''
import asyncio
from comity import Agent, Context, Reply

boss = Agent("BOSS", description="Delegates", can_call=["WORK", "GONE"])
work = Agent("WORK", aliases=["hands"], description="Does it", concurrency=1)
closed = Agent("SHUT", status="maintenance")
retired = Agent("OLD", status="retired")

@boss.capability("ASK")
async def ask(ctx: Context, name: str = "Ada"):
    """Have two things done."""
    replies = await ctx.gather(ctx.call("WORK", "GREET", {"name": name}), ctx.call("WORK", "CRASH"), ctx.call("SHUT", "ANY"))
    return [str(reply.status) for reply in replies]

@boss.capability("RELAY")
async def relay(ctx: Context):
    return await ctx.call("GONE", "ANY")

@work.capability("GREET", timeout_ms=5_000)
async def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return " ".join([f"hello {name}"] * times)

@work.capability("ECHO")
async def echo(**anything):
    return anything

@work.capability("CRASH")
async def crash():
    raise ValueError("it \\x1b[31m broke")

@work.capability("HANG")
async def hang():
    print("hanging", flush=True)
    await asyncio.sleep(600)

@work.capability("QUESTION")
async def question():
    return Reply.needs_input("Which year?")

@closed.capability("ANY")
@retired.capability("ANY")
async def anything():
    return 1

def make():
    return [boss, work, closed, retired]
'''


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """The one JSON document on stdout."""
        return json.loads(self.out)


def run_main(*arguments: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return Ran(code, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def content_is_unsaid(monkeypatch) -> None:
    """The demo has spans hold what was said, by a variable of its process; no later test may find it set."""
    monkeypatch.setenv(CONTENT, "")
    monkeypatch.delenv(CONTENT)


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder the working directory, with an application `app:make`."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for module in ("app", "odd", "unfit"):  # what earlier tests wrote under these names
        monkeypatch.delitem(sys.modules, module, raising=False)
    (folder / "app.py").write_text(APP, encoding="utf-8")


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A fresh working directory with an application `app:make`."""
    enter(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def comity(place):
    """Run a command."""
    return run_main


@pytest.fixture
def app(place, monkeypatch):
    """Configure `app:make`."""
    monkeypatch.setenv("COMITY_APP", "app:make")


@pytest.fixture(scope="session")
def called(tmp_path_factory) -> tuple[list[Path], Ran]:
    """The files of a store after one call, and what the command told."""
    folder = tmp_path_factory.mktemp("called")
    with pytest.MonkeyPatch.context() as monkeypatch:
        enter(folder, monkeypatch)
        monkeypatch.delenv(CONTENT, raising=False)
        ran = run_main("call", "BOSS", "ASK", "--app", "app:make", "--request-id", "job-1", "--json")
    return [*folder.glob("comity.db*")], ran


@pytest.fixture
def used(called, place, app):
    """A store with one call tree in it: `BOSS ASK`, with a success, a crash and a refusal below it."""
    files, ran = called
    for file in files:
        shutil.copy2(file, place)
    return ran.document


@pytest.fixture
def hanging(comity, start_process):
    """Start a call that never ends in a process of its own; return once the store knows it."""

    def start(request_id):
        command = [sys.executable, "-m", "comity", "call", "WORK", "HANG", "--app", "app:make", "--request-id", request_id]
        process = start_process(command)
        assert process.stderr.readline() == "hanging\n"
        while process.poll() is None:
            ran = comity("calls", "--json")
            if ran.code == 0 and any(call["request_id"] == request_id for call in ran.document["calls"]):
                break
        return process

    return start
