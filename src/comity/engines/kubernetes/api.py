"""The few requests to a Kubernetes API server that Comity makes, with the standard library alone.

Who and where come from the pod's service account, or from a kubeconfig file with a token or a client certificate. Programs that
a kubeconfig names for logging in (`exec`) are not run.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import yaml
from msgspec import Struct

from comity.errors import CallerError, UnavailableError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_TIMEOUT_S: Final = 15.0
WATCH_S: Final = 300  # how long one watch is asked for; then the next begins where it ended
WATCH_SILENCE_S: Final = WATCH_S + 30.0  # a connection that says nothing for longer is dead
RESPONSE_BYTES_MAX: Final = 8 * 1024 * 1024


class Cluster(Struct, frozen=True, kw_only=True):
    """Where an API server is, and the credentials for it. Tokens in files are read for every request, for they are renewed."""

    server: str
    namespace: str = "default"
    token: str = ""
    token_file: str = ""
    ca_data: str = ""  # PEM
    is_unverified: bool = False
    certificate: str = ""  # PEM, of the client
    key: str = ""

    def authorization(self) -> dict[str, str]:
        """Return the authorization header."""
        token = Path(self.token_file).read_text(encoding="utf-8").strip() if self.token_file else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


def find_cluster(environ: Mapping[str, str]) -> Cluster:
    """Return the cluster this process runs in, or the one its kubeconfig names."""
    if environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").exists():
        host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
        return Cluster(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            namespace=(SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default",
            token_file=str(SERVICE_ACCOUNT / "token"),
            ca_data=(SERVICE_ACCOUNT / "ca.crt").read_text(encoding="utf-8"),
        )
    path = Path(environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    if not path.exists():
        raise CallerError(f"no Kubernetes cluster: this is no pod with a service account, and {path} does not exist")
    return read_kubeconfig(path)


def read_kubeconfig(path: Path) -> Cluster:
    """Return the cluster of a kubeconfig's current context."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(document, "contexts", document["current-context"])["context"]
        cluster = _named(document, "clusters", context["cluster"])["cluster"]
        user = _named(document, "users", context.get("user", "")).get("user") or {}
        server = cluster["server"]
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise CallerError(f"{path} is no kubeconfig that can be used: {error!r}") from error
    if "exec" in user or "auth-provider" in user:
        raise CallerError(f"{path} logs in with a program; use a service account's token instead")
    return Cluster(
        server=server,
        namespace=context.get("namespace") or "default",
        token=user.get("token", ""),
        token_file=str(path.parent / user["tokenFile"]) if "tokenFile" in user else "",
        ca_data=_inline(cluster, "certificate-authority", path),
        is_unverified=bool(cluster.get("insecure-skip-tls-verify")),
        certificate=_inline(user, "client-certificate", path),
        key=_inline(user, "client-key", path),
    )


def _named(document: Any, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in (*document.get(kind, ()), {"name": name}) if one["name"] == name)
    return found


def _inline(part: Mapping[str, Any], name: str, path: Path) -> str:
    try:
        if f"{name}-data" in part:
            return base64.b64decode(part[f"{name}-data"]).decode()
        return (path.parent / part[name]).read_text(encoding="utf-8") if name in part else ""
    except (OSError, ValueError) as error:
        raise CallerError(f"{path}: {name} cannot be read: {error}") from error


class Answer(Struct, frozen=True):
    """What the API server said."""

    status: int
    body: dict[str, Any]

    @property
    def why(self) -> str:
        """Its own words for what is wrong."""
        return f"{self.status} {self.body.get('message') or self.body.get('reason') or ''}".strip()


class Api:
    """Requests to one API server, each on a connection of its own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        address = urlsplit(cluster.server)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise CallerError(f"{cluster.server!r} is no address of an API server")
        self._address = address
        self._tls = _tls(cluster) if address.scheme == "https" else None

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: str) -> Answer:
        """Send one request and return what the server said, whatever it said; raises `UnavailableError` if nothing."""
        try:
            connection, response = self._send(method, path, body, query, REQUEST_TIMEOUT_S)
            with contextlib.closing(connection), contextlib.closing(response):
                raw = response.read(RESPONSE_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            raise self._unavailable(error) from error
        try:
            found = json.loads(raw)
        except ValueError:
            found = {"message": raw[:200].decode(errors="replace")}
        return Answer(response.status, found if isinstance(found, dict) else {})

    def watch(self, path: str, **query: str) -> Watch:
        """Begin to watch; raises `UnavailableError` if the server does not answer."""
        try:
            query |= {"watch": "true", "timeoutSeconds": str(WATCH_S), "allowWatchBookmarks": "true"}
            return Watch(*self._send("GET", path, None, query, WATCH_SILENCE_S))
        except (OSError, http.client.HTTPException) as error:
            raise self._unavailable(error) from error

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, query: Mapping[str, str], timeout_s: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        host, port = self._address.hostname or "", self._address.port
        connection: http.client.HTTPConnection = (
            http.client.HTTPConnection(host, port, timeout=timeout_s)
            if self._tls is None
            else http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        )
        headers = {"Accept": "application/json", "Content-Type": "application/json", **self.cluster.authorization()}
        target = self._address.path.rstrip("/") + path + (f"?{urlencode(query)}" if query else "")
        try:
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _unavailable(self, error: Exception) -> UnavailableError:
        return UnavailableError(
            f"the Kubernetes API at {self.cluster.server} does not answer: {error}", code="STORE_UNAVAILABLE"
        )


class Watch:
    """Events as the server tells them, one JSON line each, until either side ends it."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self._connection = connection
        self._response = response
        # Kept apart: http.client lets go of the socket when the answer says that the connection ends with it.
        self._socket = connection.sock

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the type and object of every event; ends when the server ends the watch or the connection breaks."""
        while line := self._line():
            event = json.loads(line)
            yield event["type"], event["object"]

    def _line(self) -> bytes:
        try:
            return self._response.readline(RESPONSE_BYTES_MAX)
        except (OSError, http.client.HTTPException, ValueError):  # ended by us, or the network is gone: one begins anew
            return b""

    def end(self) -> None:
        """Make `events` end, from any thread."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it has ended already
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection, by the one who reads it."""
        self._response.close()
        self._connection.close()


def segment(name: str) -> str:
    """Return a name as one part of a path."""
    return quote(name, safe="")


def _tls(cluster: Cluster) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=cluster.ca_data or None)
        if cluster.is_unverified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if cluster.certificate:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as both:  # the ssl module reads keys from files only
                both.write(f"{cluster.certificate}\n{cluster.key}\n")
                both.flush()
                context.load_cert_chain(both.name)
    except (ssl.SSLError, OSError) as error:
        raise CallerError(f"the certificates for {cluster.server} cannot be used: {error}") from error
    return context
