"""A process that writes to a store which others write too: STORE NODE_ID APPENDS.

Says `ready`, waits for a line, appends so many times, waiting for each, says `done` and waits to be let go.
"""

from __future__ import annotations

import asyncio
import sys

from comity.engines.sqlite.journal import SqliteJournal
from comity.testing.contracts.records import accepted, settled, written


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()
    sys.stdin.readline()


async def main(store: str, node_id: str, appends: int) -> None:
    say("ready")  # before opening: those who start together also create the file together
    journal = SqliteJournal(store, node_id)
    journal.open()
    for number in range(appends):
        name = f"{node_id}-{number}"
        await written(journal, accepted(name, node_id=node_id), settled(name, number))
    await written(journal, accepted(f"{node_id}-open", node_id=node_id))
    say("done")
    await journal.close()


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
