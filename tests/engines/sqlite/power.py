"""A disk that loses its power. `Recorder` writes down what SQLite asks of the disk, `Disk` plays it back up to any moment.

What a file held when it was last synced is there after the cut. Of what was written since, each sector may be there or not, in
any combination, and the last write may be torn. A file that was created or deleted since its folder was last synced may be there
or not. So the disk keeps every promise that a disk makes, and no other.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final, NamedTuple

import apsw

SECTOR_BYTES: Final = 512


class Op(NamedTuple):
    """One thing asked of the disk, or the moment at which the writer was told that its commit is safe."""

    kind: str  # open, write, truncate, sync, delete, safe
    name: str = ""
    at: int = 0  # offset, size, number of commits, or 1 for an operation that syncs the folder too
    data: bytes = b""


class Recorder(apsw.VFS):
    """Passes everything on to real files but syncs, and notes it."""

    def __init__(self, ops: list[Op]) -> None:
        self.name = f"recorder-{id(self)}"
        self._ops = ops
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _File(name, flags, self._ops)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self._ops.append(Op("delete", Path(filename).name, int(syncdir)))


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], ops: list[Op]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._name = Path(path).name
        self._ops = ops
        # SQLite syncs the folder with the first sync of a journal or log it may have created.
        self._syncs_folder = int(bool(flags[0] & (apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL)))
        ops.append(Op("open", self._name))
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        self._ops.append(Op("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._ops.append(Op("truncate", self._name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._ops.append(Op("sync", self._name, self._syncs_folder))
        self._syncs_folder = 0


class Disk:
    """What a disk holds while operations come in: what is safe, and what is not yet."""

    def __init__(self) -> None:
        self.safe_commits = 0
        self._contents: dict[str, bytearray] = {}
        self._unsynced: dict[str, list[Op]] = {}
        self._names: set[str] = set()  # in the folder as it is
        self._safe_names: set[str] = set()  # in the folder as it was last synced

    def do(self, op: Op) -> None:
        match op.kind:
            case "open":
                if op.name not in self._names:
                    self._names.add(op.name)
                    self._contents[op.name] = bytearray()
                    self._unsynced[op.name] = []
            case "write" | "truncate":
                self._unsynced[op.name].append(op)
            case "sync":
                for one in self._unsynced[op.name]:
                    _apply(self._contents[op.name], one)
                self._unsynced[op.name].clear()
            case "delete":
                self._names.discard(op.name)
            case "safe":
                self.safe_commits = op.at
        if op.kind in {"sync", "delete"} and op.at:
            self._safe_names = set(self._names)

    @property
    def has_unsynced(self) -> bool:
        """Whether a cut at this moment could take something."""
        return any(self._unsynced[name] for name in self._names)

    def cut(self, folder: Path, chance: random.Random) -> None:
        """Write to `folder` what is found after the power came back."""
        unsure = sorted(self._names ^ self._safe_names)
        names = (self._names & self._safe_names) | {name for name in unsure if chance.random() < 0.5}
        mood = chance.choice((self._nothing, self._everything, self._some, self._torn))
        for name in sorted(names):
            content = bytearray(self._contents[name])
            for op in mood(self._unsynced[name], chance):
                _apply(content, op)
            (folder / name).write_bytes(content)

    def _nothing(self, ops: list[Op], chance: random.Random) -> list[Op]:
        return []

    def _everything(self, ops: list[Op], chance: random.Random) -> list[Op]:
        return ops

    def _some(self, ops: list[Op], chance: random.Random) -> list[Op]:
        """Any sectors of any writes, and so in any order."""
        share = chance.random()
        return [sector for op in ops for sector in _sectors(op) if chance.random() < share]

    def _torn(self, ops: list[Op], chance: random.Random) -> list[Op]:
        """All up to some write, and of that a part that ends in the middle of a sector."""
        if not ops:
            return []
        last = chance.randrange(len(ops))
        torn = ops[last]
        return [*ops[:last], torn._replace(data=torn.data[: chance.randrange(len(torn.data) + 1)])]


def _sectors(op: Op) -> list[Op]:
    if op.kind != "write":
        return [op]
    begin, parts = op.at, []
    while begin < op.at + len(op.data):
        end = min((begin // SECTOR_BYTES + 1) * SECTOR_BYTES, op.at + len(op.data))
        parts.append(op._replace(at=begin, data=op.data[begin - op.at : end - op.at]))
        begin = end
    return parts


def _apply(content: bytearray, op: Op) -> None:
    size = op.at if op.kind == "truncate" else op.at + len(op.data)
    if len(content) < size:
        content.extend(bytes(size - len(content)))
    if op.kind == "truncate":
        del content[size:]
    else:
        content[op.at : size] = op.data
