"""Python programs in a fork of this process, which has imported already what a new interpreter needs half a second for.

For tests of what a process does that can be killed, fill a disk or be read by another. A test of what a program imports, of how the
interpreter begins or ends, or that runs while this process has other threads, starts a new interpreter.
"""

from __future__ import annotations

import logging
import os
import runpy
import signal
import subprocess
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

from comity.runtime.agent import forked


def start(command: list[Any], *, env: dict[str, str] | None = None, **more: Any) -> subprocess.Popen:
    """Start `[sys.executable, ...]` as `subprocess.Popen` does, with the same arguments, but in a fork of this process."""
    words = [os.fspath(word) for word in command[1:]]

    def begin() -> None:
        kept = sorted(more.get("pass_fds", ()))
        for after, fd in zip([2, *kept], [*kept, os.sysconf("SC_OPEN_MAX")], strict=True):
            os.closerange(after + 1, fd)  # with them the pipe whose end tells this process that the program has begun
        _run(words, env)

    # `begin` does not return, so no other program takes the place of the fork.
    return subprocess.Popen(command, preexec_fn=begin, **more)  # noqa: PLW1509  this process has one thread


def run(command: list[Any], **more: Any) -> subprocess.CompletedProcess:
    """Run `[sys.executable, ...]` to its end and return its code and its output as text."""
    pipe = subprocess.PIPE
    with start(command, **{"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "text": True} | more) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _run(words: list[str], env: dict[str, str] | None) -> None:
    """Run a program by the words of its command line, and end this process as the interpreter would."""
    code = 1
    try:
        _forget_the_test(env)
        _main(words)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)  # noqa: T201
    except BaseException:  # noqa: BLE001  the end of a program
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _forget_the_test(env: dict[str, str] | None) -> None:
    forked._is_child = False  # of a node that this test runs or an earlier one left: the program is none of its children
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # of pytest-timeout
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python does
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    warnings.resetwarnings()
    for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", kind)  # as Python does
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


def _main(words: list[str]) -> None:
    first, *rest = words
    if first == "-m":
        sys.argv[:] = rest
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)  # noqa: S102  a test's own program
    else:
        sys.argv[:] = words
        sys.path.insert(0, str(Path(first).absolute().parent))
        runpy.run_path(first, run_name="__main__")
