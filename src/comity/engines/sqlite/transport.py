"""Messages between the processes that share a store: each listens on a Unix socket beside it.

A frame is its length in four bytes, one byte that says what it is, and the content. Everything sent to one process within a
turn of the event loop leaves in one write. Only processes of the same user, and of root, are heard: the socket has mode 0600,
and the kernel says who is at the other end of a connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import struct
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from comity.errors import UnavailableError
from comity.ports import Noticed, Receive

log = logging.getLogger("comity")

FRAME_BYTES_MAX: Final = 16 * 1024 * 1024  # an Ask holds a request of up to 3 MiB
BACKLOG_BYTES_MAX: Final = 64 * 1024 * 1024  # send buffer per process; beyond it messages are dropped
_PATH_BYTES_MAX: Final = 100  # of a socket's address; the kernel takes 108
_NAME_BYTES_MAX: Final = 60
_HEADER = struct.Struct(">IB")
_HELLO, _MESSAGE = 0, 1  # the type of a frame
_CREDENTIALS = struct.Struct("iII")  # pid, uid and gid, as Linux has them


class Hello(Struct, frozen=True):
    """The first frame of a connection, repeated when the agents change: which node sends, and what it hosts."""

    node_id: str
    agents: tuple[str, ...] = ()


_encode = msgspec.json.Encoder().encode
_decode_hello = msgspec.json.Decoder(Hello).decode


def socket_path(store: Path, node_id: str) -> Path:
    """Return the socket path of a node."""
    return store.with_name(f"{_prefix(store)}.{quote(node_id, safe='')}.sock")


def _prefix(store: Path) -> str:
    """Return the name of a store, or a digest of a name that is too long for the address of a socket."""
    name = store.name
    return name if len(name.encode()) <= _NAME_BYTES_MAX else hashlib.blake2b(name.encode(), digest_size=12).hexdigest()


def listeners(store: Path) -> list[str]:
    """Return the nodes with a socket beside a store, sorted; some may be dead."""
    prefix = f"{_prefix(store)}."
    names = (one.name for one in store.parent.iterdir() if one.suffix == ".sock" and one.name.startswith(prefix))
    return sorted(unquote(name[len(prefix) : -len(".sock")]) for name in names)


class SocketTransport:
    """One process's end of the sockets beside a store."""

    def __init__(self, store: Path, is_alive: Callable[[str], bool]) -> None:
        self._store = store.absolute()
        self._is_alive = is_alive
        self._node_id = ""
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._hello = b""
        self._links: dict[str, _Link] = {}  # outgoing connections by node
        self._heard: dict[_Inbound, None] = {}  # incoming connections
        self._hosts: dict[str, frozenset[str]] = {}  # by node: its agents
        self._changed = asyncio.Event()  # a process announced its agents, or is gone
        self._receive: Receive = _ignore
        self._met: Noticed | None = None
        self._lost: Noticed | None = None

    async def open(self, node_id: str, receive: Receive, *, met: Noticed | None = None, lost: Noticed | None = None) -> None:
        """Listen, and connect to the processes that listen already. `met` and `lost` are called for nodes that come and go."""
        self._loop = asyncio.get_running_loop()
        self._node_id, self._receive, self._met, self._lost = node_id, receive, met, lost
        if self._server is not None:  # it already listens, since before it shared its work
            return
        self._hello = self._hello or _encode(Hello(node_id))
        path = socket_path(self._store, node_id)
        unnamed = path.with_suffix(".sock-new")
        try:
            with _Folder(path.parent) as folder:
                listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    unnamed.unlink(missing_ok=True)
                    listening.bind(folder.address(unnamed))
                    unnamed.chmod(0o600)  # before it listens: until then no process can connect
                    listening.listen(128)
                    listening.setblocking(False)
                    unnamed.rename(path)  # a process that finds it by its name finds it listening
                    # Python 3.13 looks at the address the socket was bound to, which leads through the folder's number.
                    self._server = await self._loop.create_unix_server(lambda: _Inbound(self), sock=listening)
                except BaseException:
                    listening.close()
                    raise
        except OSError as error:
            what = f"cannot listen beside the store {self._store}: {error}"
            raise UnavailableError(what, code="STORE_UNAVAILABLE") from error
        self._path = path
        for other in listeners(self._store):
            if other != node_id and self._is_there(other):
                self._link(other)

    async def close(self) -> None:
        """Send pending messages and close all connections."""
        if self._server is None:
            return
        self._receive, self._met, self._lost = _ignore, None, None
        self._server.close()
        self._server = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        links, self._links = self._links, {}
        for link in links.values():
            link.close()
        for inbound in list(self._heard):
            inbound.abort()
        self._hosts.clear()
        await asyncio.gather(*(link.task for link in links.values() if link.task is not None), return_exceptions=True)

    def send(self, node_id: str, message: bytes) -> None:
        """Send a message, in one write with all others to that node in this turn of the loop."""
        if self._server is None:
            return
        if len(message) >= FRAME_BYTES_MAX:
            log.warning("a message of %d bytes to the node %s is too long and was not sent", len(message), node_id)
            return
        link = self._links.get(node_id)
        if link is None:
            if not socket_path(self._store, node_id).exists():
                return
            link = self._link(node_id)
        link.write(_MESSAGE, message)

    def peers(self) -> Sequence[str]:
        """Return the other nodes, in order."""
        return sorted(self._links)

    async def meet(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` until every connected process has announced its agents."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._links.keys() <= self._hosts.keys():
                    self._changed.clear()
                    await self._changed.wait()

    def hosts(self, agent_id: str) -> Sequence[str]:
        """Return the other nodes that host an agent, in order."""
        return sorted(node_id for node_id, agents in self._hosts.items() if agent_id in agents)

    def announce(self, agents: Collection[str]) -> None:
        """Tell the others, now and when they come, which agents this node hosts."""
        self._hello = _encode(Hello(self._node_id, tuple(sorted(agents))))
        for link in self._links.values():
            link.write(_HELLO, self._hello)

    def greet(self, node_ids: Collection[str]) -> None:
        """Connect to nodes that may not have listened before."""
        for node_id in node_ids:
            if node_id not in self._links and socket_path(self._store, node_id).exists():
                self._link(node_id)

    # --- connections ---

    def _link(self, node_id: str) -> _Link:
        link = self._links[node_id] = _Link(self._loop, node_id, self._gone)
        link.write(_HELLO, self._hello)
        link.task = self._loop.create_task(self._connect(link), name=f"connect to {node_id}")
        return link

    async def _connect(self, link: _Link) -> None:
        path = socket_path(self._store, link.node_id)
        connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connecting.setblocking(False)
            with _Folder(path.parent) as folder:
                await self._loop.sock_connect(connecting, folder.address(path))
            if not _is_own(connecting):
                raise PermissionError(f"{path} belongs to another user")
            await self._loop.create_unix_connection(lambda: link, sock=connecting)
        except OSError:  # it is gone, or does not listen yet: it will connect to this one
            connecting.close()
            self._gone(link)
        finally:
            link.task = None

    def _gone(self, link: _Link) -> None:
        """Forget a process whose socket is closed: it has left or died."""
        if self._links.get(link.node_id) is link:
            del self._links[link.node_id]
            self._hosts.pop(link.node_id, None)
            self._changed.set()
            self._is_there(link.node_id)
            if self._lost is not None:
                self._lost(link.node_id)

    def _is_there(self, node_id: str) -> bool:
        """Return whether a process lives; the socket of a dead process is removed."""
        if self._is_alive(node_id):
            return True
        socket_path(self._store, node_id).unlink(missing_ok=True)
        return False

    def heard(self, inbound: _Inbound, hello: Hello) -> None:
        """Note a process that has connected, and connect to it in turn."""
        self._heard[inbound] = None
        is_new = hello.node_id not in self._hosts
        self._hosts[hello.node_id] = frozenset(hello.agents)
        self._changed.set()
        if hello.node_id not in self._links and self._server is not None:
            self._link(hello.node_id)
        if is_new and self._met is not None:
            self._met(hello.node_id)

    def received(self, sender: str, message: bytes) -> None:
        """Pass a message to the receiver. Log its exception: the connection and the next messages must not be lost."""
        try:
            self._receive(sender, message)
        except Exception:  # a task boundary: asyncio would close the connection
            log.exception("a message of the node %s could not be taken", sender)

    def hung_up(self, inbound: _Inbound) -> None:
        """Forget a connection."""
        self._heard.pop(inbound, None)


class _Link(asyncio.Protocol):
    """A connection on which this process sends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, node_id: str, gone: Callable[[_Link], None]) -> None:
        self.node_id = node_id
        self.task: asyncio.Task[None] | None = None
        self._loop = loop
        self._gone = gone
        self._parts: list[bytes] = []
        self._bytes = 0
        self._is_armed = False
        self._transport: asyncio.WriteTransport | None = None

    def write(self, kind: int, content: bytes) -> None:
        """Send a frame at the end of this turn of the loop, or drop it if the send buffer is full."""
        if self._bytes + len(content) > BACKLOG_BYTES_MAX:
            return
        self._parts += (_HEADER.pack(len(content), kind), content)
        self._bytes += len(content)
        if not self._is_armed and self._transport is not None:
            self._is_armed = True
            self._loop.call_soon(self._flush)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the gathered frames."""
        assert isinstance(transport, asyncio.WriteTransport)
        transport.set_write_buffer_limits(high=BACKLOG_BYTES_MAX)
        self._transport = transport
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Tell the transport."""
        self._transport = None
        self._gone(self)

    def close(self) -> None:
        """Send pending frames and close the connection."""
        if self._transport is not None:
            self._flush()
            self._transport.close()
        elif self.task is not None:
            self.task.cancel()

    def _flush(self) -> None:
        self._is_armed = False
        parts, self._parts, self._bytes = self._parts, [], 0
        if parts and self._transport is not None and self._transport.get_write_buffer_size() < BACKLOG_BYTES_MAX:
            self._transport.write(b"".join(parts))


class _Inbound(asyncio.Protocol):
    """A connection on which another process sends."""

    def __init__(self, ends_at: SocketTransport) -> None:
        self._ends_at = ends_at
        self._sender = ""
        self._rest = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close a connection from a process of another user."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if not _is_own(transport.get_extra_info("socket")):
            log.warning("a process of another user tried to connect beside the store")
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle complete frames."""
        held: bytes | bytearray = data
        if self._rest:
            self._rest += data
            held = self._rest
        at, end = 0, len(held)
        while end - at >= _HEADER.size:
            length, kind = _HEADER.unpack_from(held, at)
            begin = at + _HEADER.size
            if end - begin < length < FRAME_BYTES_MAX:
                break
            if length >= FRAME_BYTES_MAX or not self._take(kind, bytes(held[begin : begin + length])):
                self.abort()
                return
            at = begin + length
        if held is data:
            self._rest = bytearray(data[at:])
        else:
            del self._rest[:at]

    def _take(self, kind: int, content: bytes) -> bool:
        """Handle a frame; return whether it was valid."""
        if kind == _MESSAGE and self._sender:
            self._ends_at.received(self._sender, content)
            return True
        if kind != _HELLO:
            return False
        try:
            hello = _decode_hello(content)
        except (msgspec.MsgspecError, ValueError):
            return False
        if self._sender not in {"", hello.node_id} or not hello.node_id:
            return False
        self._sender = hello.node_id
        self._ends_at.heard(self, hello)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Tell the transport."""
        self._ends_at.hung_up(self)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()


class _Folder:
    """A folder by its number, so that a path in it is short enough for the address of a socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def __enter__(self) -> _Folder:
        self._file = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def address(self, path: Path) -> str:
        """Return a name of a path in this folder that a socket can have."""
        return str(path) if len(os.fsencode(path)) <= _PATH_BYTES_MAX else f"/proc/self/fd/{self._file}/{path.name}"


def _is_own(connection: socket.socket) -> bool:
    """Return whether a process of this user, or of root, is at the other end."""
    if not hasattr(socket, "SO_PEERCRED"):  # elsewhere than on Linux the mode of the file decides
        return True
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(raw)[1] in {os.getuid(), 0}


def _ignore(sender: str, message: bytes) -> None:
    """Drop a message that comes before the transport is open, or after it closed."""
