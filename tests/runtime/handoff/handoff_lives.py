"""Receivers of handoffs on one store, each to be ended by kill -9. Run by `test_handoff_kill.py` as `handoff_lives.py SOCKET_FD`.

The process imports everything once and forks a receiver for each message it is sent: an order and the writing end of a pipe. A
receiver says what happens, a line each, with the time of the system's monotonic clock in nanoseconds:

    ready TIME            it listens
    begin TIME ID FENCE   it was given this handoff and begins to work on it
    done TIME ID FENCE    the handoff is completed, durably
    lost TIME ID FENCE    completing it was refused
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sys
import time
import traceback
from typing import Any

from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.errors import ComityError

LONGEST_LIFE_S = 300


async def live(order: dict[str, Any], pipe: int) -> None:
    chance = random.Random(order["seed"])

    def say(word: str, *more: object) -> None:
        os.write(pipe, (" ".join(map(str, (word, time.monotonic_ns(), *more))) + "\n").encode())

    async with AsyncHandoffReceiver("worker", store=order["store"]) as receiver:
        await receiver.poll()
        say("ready")

        async def work(handoff: Any) -> None:
            say("begin", handoff.id, handoff.fence)
            await asyncio.sleep(chance.random() * order["work_s"])
            try:
                await receiver.complete(handoff.id, result={"n": handoff.inputs["n"]})
            except ComityError:
                say("lost", handoff.id, handoff.fence)
            else:
                say("done", handoff.id, handoff.fence)

        working: set[asyncio.Task[None]] = set()
        while True:
            for handoff in await receiver.take(2):
                task = asyncio.create_task(work(handoff))
                working.add(task)
                task.add_done_callback(working.discard)


def begin(order: dict[str, Any], pipe: int) -> int:
    """Fork a receiver and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(LONGEST_LIFE_S)  # nothing is left behind where the test itself was killed
    try:
        asyncio.run(live(order, pipe))
    except BaseException:  # noqa: BLE001  the end of the process
        os.write(2, traceback.format_exc().encode())
    os._exit(1)


def serve(channel: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        message, pipes, _, _ = socket.recv_fds(channel, 1 << 16, 1)
        if not message:
            return
        pid = begin(json.loads(message), pipes[0])
        os.close(pipes[0])
        channel.send(b"%d" % pid)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
