"""The console's files, as they are in the package: packed for clients that can, with an ETag, under a strict content policy.

The page names its files below a folder that is a hash of them all, so that a browser keeps them for good and asks for the page
alone when it comes again; a tab that was open when the node changed never mixes files of two versions.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

from starlette.routing import BaseRoute, Route

from comity.core.call.limits import CITED_CHARS_MAX
from comity.errors import CallerError
from comity.server.guard import PAGE_HEADERS
from comity.server.state import State
from comity.server.web import Receive, Scope, Send

_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_INDEX: Final = "index.html"
_NAMED: Final = re.compile(rb'( (?:href|src)=")(?=[\w./-]+")')  # where the page names a file of its own
_FOR_GOOD: Final = b"public, max-age=31536000, immutable"


class Console:
    """Serves the files of a folder of the package."""

    def __init__(self, root: Traversable) -> None:
        self._root = root
        self._files: dict[str, tuple[bytes, bytes, bytes, bytes]] = {}  # content, the same packed, type and tag, by name

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one file. Only names that the package has are looked for."""
        scope["comity.route"] = "/console"
        if scope["method"] not in {"GET", "HEAD"}:
            raise CallerError(f"{scope['method']} is not allowed here", code="HTTP_METHOD_UNKNOWN", allow="GET, HEAD")
        path = scope["path_params"].get("path", "")
        name = path.removeprefix(self._folder)
        content, packed, media_type, tag = self._file(name or _INDEX)
        asked = dict(scope["headers"])
        headers = [(b"cache-control", b"no-cache" if name == path else _FOR_GOOD), (b"vary", b"accept-encoding"), *PAGE_HEADERS]
        if b"gzip" in asked.get(b"accept-encoding", b""):
            content, tag = packed, tag[:-1] + b'-gzip"'
            headers.append((b"content-encoding", b"gzip"))
        headers.append((b"etag", tag))
        if asked.get(b"if-none-match", b"") == tag:
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        headers += [(b"content-type", media_type), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})

    @cached_property
    def _folder(self) -> str:
        """The folder that the page names its files in, with a slash."""
        digest = hashlib.sha256()
        for one in _files(self._root):
            digest.update(one.name.encode() + b"\0" + one.read_bytes())
        return f"{digest.hexdigest()[:16]}/"

    def _file(self, name: str) -> tuple[bytes, bytes, bytes, bytes]:
        found = self._files.get(name)
        if found is None:
            content = self._read(name)
            if name == _INDEX:
                content = _NAMED.sub(rb"\g<1>" + self._folder.encode(), content)
            suffix = name[name.rfind(".") :]
            kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
            if kind.startswith("text/"):
                kind += "; charset=utf-8"
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            packed = gzip.compress(content, mtime=0)
            found = self._files[name] = (content, packed, kind.encode(), tag.encode())
        return found

    def _read(self, name: str) -> bytes:
        place = self._root
        for step in name.split("/"):
            child = next((one for one in place.iterdir() if one.name == step), None) if place.is_dir() else None
            if child is None or step.startswith((".", "_")):
                raise CallerError(f"the console has no file {ascii(name)[:CITED_CHARS_MAX]}", code="HTTP_PATH_UNKNOWN")
            place = child
        if not place.is_file() or place.name.endswith(".py"):
            raise CallerError(f"the console has no file {ascii(name)[:CITED_CHARS_MAX]}", code="HTTP_PATH_UNKNOWN")
        return place.read_bytes()


def _files(folder: Traversable) -> Iterator[Traversable]:
    for one in sorted(folder.iterdir(), key=lambda each: each.name):
        if one.is_dir():
            yield from _files(one)
        else:
            yield one


async def _to_console(scope: Scope, _receive: Receive, send: Send) -> None:
    scope["comity.route"] = "/"
    headers = [(b"location", b"/console/"), *PAGE_HEADERS]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def routes(_state: State) -> Iterable[BaseRoute]:
    """Return the console's paths; none where the package has no console."""
    root = resources.files("comity").joinpath("console")
    if not root.is_dir():
        return []

    class Home:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await _to_console(scope, receive, send)

    console = Console(root)
    return [
        Route("/", endpoint=Home()),
        Route("/console", endpoint=Home()),
        Route("/console/", endpoint=console),
        Route("/console/{path:path}", endpoint=console),
    ]
