"""Used tokens: a token that names no request is bound to the request it is first used for, also across restarts.

The bindings are lines of one file, which every process that serves the node reads on and appends to under a lock. They are in
the operating system's hands at once and not forced to disk: losing them needs a power cut within a token's few minutes.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

import msgspec

from comity.core.access.claims import Claims, refused
from comity.core.access.replay import Replays

FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_Line = tuple[str, str, str, int]
_decode = msgspec.json.Decoder(_Line).decode


class UsedTokens:
    """Which request each token was used for. Without a folder it is remembered as long as the process lives."""

    def __init__(self, folder: str | Path | None) -> None:
        self._path = None if folder is None else Path(folder) / "used.log"
        self._replays = Replays()
        self._read_to = 0
        self._inode = 0

    def bind(self, claims: Claims, request_id: str, *, now_ms: int) -> None:
        """Bind a token to a request. Raises `RefusedError` if it is for another request."""
        named = "" if claims.cty is None else claims.cty.req
        if named:
            if named != request_id:
                raise refused("IDENTITY_TOKEN_REUSED", "the token was made for another request", claims)
            return
        now_s = now_ms / 1000
        if self._path is None:
            is_first = self._replays.bind(claims.iss, claims.jti, request_id, claims.exp, now_s=now_s)
        else:
            is_first = self._bind_in_file(self._path, claims, request_id, now_s)
        if not is_first:
            raise refused("IDENTITY_TOKEN_REUSED", "the token was used for another request", claims)

    def _bind_in_file(self, path: Path, claims: Claims, request_id: str, now_s: float) -> bool:
        with path.open("a+b") as file:
            path.chmod(0o600)
            fcntl.flock(file, fcntl.LOCK_EX)
            found = os.fstat(file.fileno())
            if found.st_ino != self._inode or found.st_size < self._read_to:
                self._inode, self._read_to = found.st_ino, 0
            file.seek(self._read_to)
            is_torn = False
            for line in file:
                self._take(line, now_s)
                is_torn = not line.endswith(b"\n")
            known = self._replays.bound(claims.iss, claims.jti)
            if not self._replays.bind(claims.iss, claims.jti, request_id, claims.exp, now_s=now_s):
                return False
            if known is None:
                if file.tell() > FILE_BYTES_MAX:
                    file.truncate(0)
                    file.write(b"".join(map(_line, self._replays.entries())))
                else:
                    file.write(b"\n" * is_torn + _line((claims.iss, claims.jti, request_id, claims.exp)))
                file.flush()
            self._read_to = file.tell()
        return True

    def _take(self, line: bytes, now_s: float) -> None:
        try:
            issuer, token_id, request_id, expires_s = _decode(line)
        except msgspec.MsgspecError:
            return  # a process died while it wrote: the token's request had not begun
        self._replays.bind(issuer, token_id, request_id, expires_s, now_s=now_s)  # which drops those that have expired


def _line(entry: _Line) -> bytes:
    return msgspec.json.encode(entry) + b"\n"
