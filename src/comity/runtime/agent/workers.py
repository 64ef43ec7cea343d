"""Worker processes for functions declared with `run_in="process"`, killed if their call ends first.

A worker serves one call at a time and is reused. Cancelling the call kills the worker, since nothing else stops a computation.
A worker exits when its parent process is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from comity.core.call.limits import REPLY_BYTES_MAX
from comity.core.document.foreign_errors import error_of, told
from comity.core.document.payload import PayloadError, pack, unpack
from comity.core.envelope.envelope import Error, decode_error, encode
from comity.core.envelope.reserved import is_reserved, reserved_error
from comity.errors import ComityError, TargetError, UnavailableError
from comity.runtime.agent.failure_log import HideText, log_trace

if TYPE_CHECKING:  # slow to import, and few nodes have work for another process
    from multiprocessing.context import SpawnProcess

log = logging.getLogger("comity")

RunInProcess = Callable[[Callable[..., Any], dict[str, Any]], Awaitable[Any]]  # a function and its arguments

UNGUARDED: Final = (
    "a worker process imports the program's main module, and this one starts a node when it is imported: "
    'put what it runs under `if __name__ == "__main__":`'
)
_UNGUARDED_EXIT: Final = 87  # exit code of an unguarded main module; otherwise unused
_LENGTH_BYTES: Final = 8  # length prefix of every message
_JOIN_S: Final = 1.0  # how long to wait for the exit of a process that closed its connection


class Worker:
    """One process and its non-blocking connection: a starting process does not read yet, and the loop must not wait."""

    def __init__(self) -> None:
        import multiprocessing  # noqa: PLC0415

        # Spawned, not forked: a fork would copy the event loop, its threads' locks and the open store.
        context = multiprocessing.get_context("spawn")
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        """Whether the process can take another job."""
        return self._process.is_alive()

    async def run(self, job: bytes, hide: HideText | None) -> Any:
        """Send a job and wait for its outcome; `hide` removes personal data from log texts."""
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._socket, _framed(job))
            length = int.from_bytes(await self._received(loop, _LENGTH_BYTES))
            kind, *rest = pickle.loads(await self._received(loop, length))  # noqa: S301  our own child wrote it
        except (EOFError, ConnectionError):
            raise await self._died() from None
        if kind == "result":
            return unpack(rest[0])
        raise _rebuilt(hide, kind, *rest)

    async def _received(self, loop: asyncio.AbstractEventLoop, length: int) -> bytearray:
        message, end = bytearray(length), 0
        with memoryview(message) as view:
            while end < length:
                taken = await loop.sock_recv_into(self._socket, view[end:])
                if not taken:
                    raise EOFError
                end += taken
        return message

    async def _died(self) -> ComityError:
        await asyncio.to_thread(self._process.join, _JOIN_S)
        if self._process.exitcode == _UNGUARDED_EXIT:
            return TargetError(UNGUARDED, code="TARGET_MISCONFIGURED")
        what = f"the worker process died (exit code {self._process.exitcode})"
        return UnavailableError(what, code="TARGET_TEMPORARY_FAILURE")

    def kill(self) -> None:
        """Kill the process at once."""
        self._process.kill()
        self._process.join()
        self._socket.close()


class Workers:
    """The worker processes of one node, at most one per core busy at a time."""

    def __init__(self, hide: HideText | None = None) -> None:
        self._hide = hide
        self._places = asyncio.Semaphore(os.cpu_count() or 1)
        self._idle: list[Worker] = []

    async def run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Run a function of an importable module in a process and return its result."""
        try:
            job = pickle.dumps((function, arguments))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            name = getattr(function, "__qualname__", function)
            message = f"{name} cannot run in a process: it must be a function at the top of a module ({error})"
            raise TargetError(message, code="TARGET_MISCONFIGURED") from None
        async with self._places:
            worker = self._idle.pop() if self._idle else await asyncio.to_thread(Worker)
            try:
                result = await worker.run(job, self._hide)
            except ComityError:
                if worker.is_alive:
                    self._idle.append(worker)
                else:
                    worker.kill()
                raise
            except BaseException:
                worker.kill()
                raise
            self._idle.append(worker)
            return result

    def close(self) -> None:
        """End all processes; busy ones were killed with their calls."""
        for worker in self._idle:
            worker.kill()
        self._idle.clear()


def check_guarded() -> None:
    """Exit a worker process whose main module starts a node on import, with an exit code that tells the parent why."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and getattr(process.current_process(), "_inheriting", False):  # as multiprocessing itself checks
        sys.stderr.write(f"{UNGUARDED}\n")
        raise SystemExit(_UNGUARDED_EXIT)


def _framed(message: bytes) -> bytes:
    return len(message).to_bytes(_LENGTH_BYTES) + message


def _rebuilt(hide: HideText | None, kind: str, raw: bytes, trace: str = "") -> ComityError:
    error = decode_error(raw)
    if kind == "crash":
        log_trace(trace, hide, "a function in a worker process raised")
    after, problems = error.retry_after_ms, error.problems
    return ComityError(error.message, code=error.code, retryable=error.retryable, retry_after_ms=after, problems=problems)


def _serve(connection: socket.socket) -> None:
    """Run jobs until the parent closes the connection. Runs in the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection.settimeout(None)  # the program may have set a default timeout
    with contextlib.suppress(ConnectionError), connection.makefile("rb") as jobs:
        while length := jobs.read(_LENGTH_BYTES):
            connection.sendall(_framed(pickle.dumps(_outcome(jobs.read(int.from_bytes(length))))))


def _outcome(job: bytes) -> tuple[str, bytes] | tuple[str, bytes, str]:
    try:
        function, arguments = pickle.loads(job)  # noqa: S301  our own parent wrote it
    except Exception as error:  # noqa: BLE001  whatever importing the function's module raises
        what = f"a worker process cannot import the function: {told(error)}"
        return "error", encode(Error.of("TARGET_MISCONFIGURED", what))
    try:
        result = function(**arguments)
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
        return "result", pack(result, path="data", bytes_max=REPLY_BYTES_MAX)
    except BaseException as error:  # noqa: BLE001  the process boundary: it becomes a value to the parent
        return _told(error)


def _told(raised: BaseException) -> tuple[str, bytes] | tuple[str, bytes, str]:
    try:
        if isinstance(raised, ComityError):
            error = error_of(raised)
            if is_reserved(error.code):  # no node runs in this process, so the code is not the platform's
                error = reserved_error(f"the function raised the code {error.code}", error.message)
            return "error", encode(error)
        if isinstance(raised, PayloadError):
            return "error", encode(Error.of("OUTPUT_VALIDATION_FAILED", str(raised), problems=raised.problems))
    except PayloadError as unsound:
        return "error", encode(Error.of("OUTPUT_VALIDATION_FAILED", str(unsound), problems=unsound.problems))
    return "crash", encode(Error.of("TARGET_CRASHED", told(raised))), "".join(traceback.format_exception(raised))


def _end_with_parent() -> None:
    import multiprocessing  # noqa: PLC0415

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
