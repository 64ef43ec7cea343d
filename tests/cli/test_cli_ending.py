"""SIGTERM is Ctrl-C under another exit code."""

import asyncio
import signal

import pytest

from comity.cli.ui.ending import Ending
from comity.cli.ui.exits import Exit


@pytest.mark.parametrize("on_interrupt", [signal.default_int_handler, signal.SIG_IGN], ids=["by hand", "in the background"])
def test_a_task_is_cancelled_by_sigterm_even_where_the_shell_made_it_deaf_to_sigint(on_interrupt):
    ended = []

    async def work():
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        with Ending() as ending, pytest.raises(KeyboardInterrupt):
            asyncio.run(work())
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ended, ending.code) == (["cancelled"], Exit.TERMINATED)


def test_after_the_command_sigterm_means_what_it_meant_before():
    before = signal.getsignal(signal.SIGTERM)
    with Ending():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before
