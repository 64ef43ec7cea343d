"""Used tokens: a token that names no request is bound to the request it is first used for, also across restarts.

The bindings are lines of one file, which every process that serves the node reads on and appends to under a lock. They are in
the operating system's hands at once and not forced to disk: losing them needs a power cut within a token's few minutes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from comity.core.access.claims import Claims, refused
from comity.core.access.replay import Replays
from comity.core.units import MS_PER_S

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_HEAD_BYTES: Final = 33  # a file that was compacted begins with a line of its own, so that no two files begin alike
_Line = tuple[str, str, str, int]
_decode = msgspec.json.Decoder(_Line).decode


class UsedTokens:
    """Which request each token was used for. Without a folder it is remembered as long as the process lives."""

    def __init__(self, folder: str | Path | None) -> None:
        self._path = None if folder is None else Path(folder) / "used.log"
        self._replays = Replays()
        self._head = b""  # the first bytes of the file as it was last read
        self._read_to = 0

    def bind(self, claims: Claims, request_id: str, *, now_ms: int) -> None:
        """Bind a token to a request. Raises `RefusedError` if it is for another request."""
        named = "" if claims.cty is None else claims.cty.req
        if named:
            if named != request_id:
                raise refused("IDENTITY_TOKEN_REUSED", "the token was made for another request", claims)
            return
        now_s = now_ms / MS_PER_S
        if self._path is None:
            is_first = self._replays.bind(claims.iss, claims.jti, request_id, claims.exp, now_s=now_s)
        else:
            is_first = self._bind_in_file(self._path, claims, request_id, now_s)
        if not is_first:
            raise refused("IDENTITY_TOKEN_REUSED", "the token was used for another request", claims)

    def _bind_in_file(self, path: Path, claims: Claims, request_id: str, now_s: float) -> bool:
        with _locked(path) as file:
            head = os.pread(file.fileno(), _HEAD_BYTES, 0)
            if head != self._head:  # another process has written the file anew: what is known of it begins elsewhere
                self._head, self._read_to = head, 0
            file.seek(self._read_to)
            is_torn = False
            for line in file:
                self._take(line, now_s)
                is_torn = not line.endswith(b"\n")
            known = self._replays.bound(claims.iss, claims.jti)
            if not self._replays.bind(claims.iss, claims.jti, request_id, claims.exp, now_s=now_s):
                return False
            if known is None and file.tell() > FILE_BYTES_MAX:
                self._compact(path)
                return True
            if known is None:
                file.write(b"\n" * is_torn + _line((claims.iss, claims.jti, request_id, claims.exp)))
                file.flush()
            self._read_to = file.tell()
        return True

    def _compact(self, path: Path) -> None:
        """Replace the file by one without the tokens that have expired; a process that dies meanwhile leaves the old one."""
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        head = os.urandom(_HEAD_BYTES // 2).hex().encode() + b"\n"
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(head + b"".join(map(_line, self._replays.entries())))
            self._head, self._read_to = head, file.tell()
        fresh.replace(path)

    def _take(self, line: bytes, now_s: float) -> None:
        try:
            issuer, token_id, request_id, expires_s = _decode(line)
        except msgspec.MsgspecError:
            return  # a process died while it wrote: the token's request had not begun
        self._replays.bind(issuer, token_id, request_id, expires_s, now_s=now_s)  # which drops those that have expired


@contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Open the file while no other process has it open; a file that was replaced meanwhile is opened anew."""
    while True:
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file, path):
                path.chmod(0o600)
                yield file
                return


def _is_at(file: IO[bytes], path: Path) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _line(entry: _Line) -> bytes:
    return msgspec.json.encode(entry) + b"\n"
