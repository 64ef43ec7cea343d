"""A small Kubernetes API server on a real socket: ProjectContexts under the rules that clients must live with.

It demands the token, checks and prunes objects by the CRD's own schema, refuses an update on an old resourceVersion, and serves
watches from a history that can be compacted, so that an old resourceVersion is answered with 410.
"""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs
import yaml

CRD = Path(__file__).parents[3] / "deploy" / "kubernetes" / "projectcontext-crd.yaml"
TOKEN = "secret-token"


class KubeServer:
    """The objects of one cluster, and the server in front of them."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        crd = yaml.safe_load(CRD.read_text())["spec"]
        (version,) = crd["versions"]
        self.prefix = f"/apis/{crd['group']}/{version['name']}/namespaces/"
        self.kind, self.plural = crd["names"]["kind"], crd["names"]["plural"]
        self.schema = version["schema"]["openAPIV3Schema"]
        self.validator = jsonschema_rs.validator_for(self.schema)
        self.objects: dict[tuple[str, str], dict] = {}
        self.history: list[tuple[int, str, dict]] = []
        self.version = self.oldest = 100
        self.changed = threading.Condition()
        self.requests: list[str] = []
        self.conflicts = 0
        self.watches = 0
        self.failures: list[int] = []  # statuses to answer with, first
        self.is_ending = 0  # grows when watches are to end
        self.is_kind_known = True
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.http.daemon_threads = True
        if tls is not None:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.end_watches()
        self.http.shutdown()
        self.http.server_close()

    def put(self, namespace: str, name: str, spec: dict | None) -> None:
        """Make, change or (with None) remove an object, as `kubectl` would."""
        with self.changed:
            before = self.objects.get((namespace, name))
            if spec is None:
                self.commit("DELETED", self.objects.pop((namespace, name)))
            else:
                made = {
                    "apiVersion": "contextcore.io/v1",
                    "kind": self.kind,
                    "metadata": {"name": name, "namespace": namespace},
                }
                self.commit("ADDED" if before is None else "MODIFIED", made | {"spec": spec})

    def commit(self, what: str, found: dict) -> dict:
        self.version += 1
        stored = found | {"metadata": found["metadata"] | {"resourceVersion": str(self.version), "uid": "u"}}
        if what != "DELETED":
            self.objects[found["metadata"]["namespace"], found["metadata"]["name"]] = stored
        self.history.append((self.version, what, stored))
        self.changed.notify_all()
        return stored

    def compact(self) -> None:
        """Forget the history, as etcd does after some minutes."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self.history.clear()

    def end_watches(self) -> None:
        with self.changed:
            self.is_ending += 1
            self.changed.notify_all()

    def wait_for_watch(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.watches >= count, timeout=60)


def prune(value, schema):
    """Drop what the schema does not name, as the API server does before it stores."""
    if isinstance(value, dict):
        named = schema.get("properties", {})
        keeps = schema.get("x-kubernetes-preserve-unknown-fields", not named)
        return {name: prune(inner, named.get(name, {})) for name, inner in value.items() if keeps or name in named}
    if isinstance(value, list):
        return [prune(one, schema.get("items", {})) for one in value]
    return value


def handler(server: KubeServer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_): ...

        def do_GET(self):
            if not (found := self.place()):
                return None
            namespace, name, query = found
            if name:
                with server.changed:
                    one = server.objects.get((namespace, name))
                return self.answer(200, one) if one else self.missing(name)
            wanted = query["fieldSelector"].removeprefix("metadata.name=")
            if query.get("watch"):
                return self.watch(namespace, wanted, query)
            with server.changed:
                items = [one for key, one in server.objects.items() if key == (namespace, wanted)]
                return self.answer(200, {"items": items, "metadata": {"resourceVersion": str(server.version)}})

        def do_PUT(self):
            if not (found := self.place()):
                return None
            namespace, name, _ = found
            given = self.body()
            with server.changed:
                stored = server.objects.get((namespace, name))
                if stored is None:
                    return self.missing(name)
                if not given["metadata"].get("resourceVersion"):
                    return self.fail(422, "Invalid", "metadata.resourceVersion: must be specified for an update")
                if given["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"]:
                    server.conflicts += 1
                    return self.fail(409, "Conflict", "the object has been modified")
                return self.store("MODIFIED", 200, given)

        def do_POST(self):
            if not (found := self.place()):
                return None
            given = self.body()
            with server.changed:
                if (found[0], given["metadata"]["name"]) in server.objects:
                    return self.fail(409, "AlreadyExists", "it exists")
                if given.get("kind") != server.kind:
                    return self.fail(400, "BadRequest", "no kind")
                return self.store("ADDED", 201, given)

        def store(self, what, status, given):
            problems = [error.message for error in server.validator.iter_errors(given)]
            if problems:
                return self.fail(422, "Invalid", "; ".join(problems))
            kept = given | {"spec": prune(given["spec"], server.schema["properties"]["spec"])}
            return self.answer(status, server.commit(what, kept))

        def watch(self, namespace, name, query):
            at = int(query["resourceVersion"])
            with server.changed:
                is_gone, ending = at < server.oldest, server.is_ending
                server.watches += 1
                server.changed.notify_all()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                if is_gone:
                    self.chunk({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}})
                while not is_gone:
                    with server.changed:
                        server.changed.wait_for(lambda seen=at: server.version > seen or server.is_ending > ending, timeout=30)
                        events = [one for one in server.history if one[0] > at]
                        at, is_over = server.version, server.is_ending > ending
                    for version, what, found in events:
                        mine = found["metadata"]["name"] == name and found["metadata"]["namespace"] == namespace
                        mark = {"kind": server.kind, "metadata": {"resourceVersion": str(version)}}
                        self.chunk({"type": what, "object": found} if mine else {"type": "BOOKMARK", "object": mark})
                    if is_over:
                        break
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                pass
            self.close_connection = True

        def chunk(self, event):
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.flush()

        def place(self):
            address = urlsplit(self.path)
            server.requests.append(f"{self.command} {self.path}")
            if server.failures:
                return self.fail(server.failures.pop(0), "InternalError", "down")
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self.fail(401, "Unauthorized", "no token")
            namespace, _, rest = address.path.removeprefix(server.prefix).partition("/")
            plural, _, name = rest.partition("/")
            if not address.path.startswith(server.prefix) or plural != server.plural or not server.is_kind_known:
                return self.fail(404, "NotFound", "the server could not find the requested resource")
            return namespace, name, {key: values[0] for key, values in parse_qs(address.query).items()}

        def body(self):
            return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

        def missing(self, name):
            self.answer(404, {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": name}})

        def fail(self, status, reason, message):
            self.close_connection = True  # what was sent with it has not been read
            self.answer(status, {"kind": "Status", "code": status, "reason": reason, "message": message})

        def answer(self, status, document):
            raw = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    return Handler
